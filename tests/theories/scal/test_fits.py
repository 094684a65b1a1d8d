"""The fits against scipy, each other, and laws that are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares, minimize

from jaxdyn.theories.scal import fits
from jaxdyn.theories.scal.dynamics import laws
from jaxdyn.theories.scal.published import LAWS

LAW = LAWS["Besiroglu"]
# One program each: by itself every operation would be compiled.
fitted, levenberg, project = jax.jit(fits.fitted), jax.jit(fits.levenberg), jax.jit(fits.project)
lbfgs, starts, objective = jax.jit(fits.lbfgs), jax.jit(fits.starts, static_argnums=1), jax.jit(fits.objective)
resampled = jax.jit(fits.resampled, static_argnums=3)
TRUTH = np.array([np.log(LAW.a), np.log(LAW.b), np.log(LAW.e), LAW.alpha, LAW.beta])


def points(noise=0.0, sizes=7):
    n, d = np.meshgrid(np.geomspace(7e7, 1.6e10, sizes), np.geomspace(5e9, 5e11, sizes))
    n, d = n.ravel(), d.ravel()
    loss = np.log(laws.loss(LAW, n, d)) + noise * np.random.default_rng(0).normal(size=n.size)
    return fits.Points(*(jnp.asarray(x) for x in (np.log(n), np.log(d), loss, np.ones(n.size))))


def residual(theta, p):
    a, b, e, alpha, beta = theta
    return np.log(np.exp(a - alpha * p.n) + np.exp(b - beta * p.d) + np.exp(e)) - np.asarray(p.loss)


def test_the_objective_against_scipys_huber(x64):
    p, theta = points(0.01), TRUTH + 0.01
    half = 0.5 * fits.DELTA**2 * np.sum(np.where((z := (residual(theta, p) / fits.DELTA) ** 2) <= 1, z, 2 * np.sqrt(z) - 1))
    assert float(objective(theta, p)) == pytest.approx(half, rel=1e-9)
    assert float(objective(theta, p, 0.5)) == pytest.approx(half / 2, rel=1e-9)


@pytest.mark.slow
def test_without_noise_every_search_finds_the_law(x64):
    p = points()
    np.testing.assert_allclose(fitted(p), TRUTH, rtol=1e-7)
    first = starts(p, 3)
    assert first.shape == (3, 5) and all(any(np.array_equal(row, g) for g in fits.GRID) for row in np.asarray(first))
    ends, steps = jax.jit(jax.vmap(fits.lbfgs, (0, None)))(first, p)
    best = min(np.asarray(ends), key=lambda theta: float(objective(theta, p)))
    np.testing.assert_allclose(best, TRUTH, rtol=1e-3)
    assert int(steps.max()) <= fits.Stops().steps


def test_loose_stops_end_early(x64):
    p = points()
    first = np.asarray(starts(p, 1))[0]
    loose, few = lbfgs(first, p, 1 / p.n.size, fits.Stops(2.2e-9, 1e-5))
    strict, many = lbfgs(first, p, 1 / p.n.size, fits.STRICT)
    assert few < many
    assert float(objective(strict, p)) < 1e-3 * float(objective(loose, p))


@pytest.mark.slow
def test_noisy_fits_against_scipy_from_a_grid(x64):
    """Neither the Huber loss of scipy from 20 starts nor its L-BFGS-B on our objective gets below the minimum found here."""
    p = points(0.005)
    theta = fitted(p)
    scipys = [
        least_squares(residual, start, loss="huber", f_scale=fits.DELTA, x_scale="jac", args=(p,), max_nfev=400)
        for start in fits.GRID[::225]
    ]
    value = float(objective(theta, p))
    assert value <= min(r.cost for r in scipys) * (1 + 1e-4)
    f = jax.jit(jax.value_and_grad(lambda x: fits.objective(x, p)))
    other = minimize(
        lambda x: [np.asarray(y) for y in f(x)], theta, jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-14}
    )
    assert value <= other.fun * (1 + 1e-4)


@pytest.mark.slow
def test_weights_are_repetitions(x64):
    p = points(0.005)
    twice = fits.Points(*(np.concatenate([x, x[:5]]) for x in p))
    weighted = p._replace(weight=np.where(np.arange(p.n.size) < 5, 2.0, 1.0))
    np.testing.assert_allclose(levenberg(TRUTH, twice), levenberg(TRUTH, weighted), rtol=1e-9)
    np.testing.assert_allclose(project(twice), project(weighted), rtol=1e-9)


@pytest.mark.slow
def test_resampled_fits_spread(x64):
    p = points(0.005)
    theta = fitted(p)
    each = resampled(jax.random.key(0), theta, p, 40)
    a = jax.jit(lambda each: laws.exponent(fits.as_law(each.T)))(each)
    assert each.shape == (40, 5) and 0.005 < float(a.std()) < 0.05
    np.testing.assert_allclose(resampled(jax.random.key(0), TRUTH, points(), 5), np.tile(TRUTH, (5, 1)), rtol=1e-6)
