"""The one-layer network and the bilinear model against NumPy, finite differences and autodiff of the dense parameters."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

from jaxdyn import flow
from jaxdyn.theories.rev import bilinear, model
from jaxdyn.theories.rev.dynamics import bilinear as bilinear_theory
from jaxdyn.theories.rev.dynamics import one_layer as theory
from jaxdyn.theories.snap import model as snap

M = 7
SEQUENCE = np.array([2, 5, 3], np.int32)
PRESENT = {"x1": np.array([1.0, 0.0]), "both": np.array([1.0, 1.0])}


def numpy_log_p(y, z, sequence, both, tied):
    x1, x2 = sequence[:2]
    keys = [x1, x2] if both else [x1]
    c = np.exp([z[x2, k] for k in keys])
    c /= c.sum()
    w = y + y.T if tied else y
    scores = (c / np.sqrt((c**2).sum())) @ w[keys]
    return scores - np.log(np.exp(scores).sum())


def random_params(seed=0):
    return np.random.default_rng(seed).normal(size=(2, M, M))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("keys", PRESENT)
def test_forward(x64, keys, tied):
    y, z = random_params()
    seen = model.read(model.Params(jnp.asarray(y), jnp.asarray(z)), jnp.asarray(SEQUENCE), tied)
    expected = numpy_log_p(y, z, SEQUENCE, keys == "both", tied)
    np.testing.assert_allclose(model.log_probabilities(seen, jnp.asarray(PRESENT[keys])), expected, rtol=1e-12)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("keys", PRESENT)
def test_step_is_descent_of_finite_differences(x64, keys, tied):
    y, z = random_params(1)
    params = model.Params(jnp.asarray(y), jnp.asarray(z))
    after = model.sgd_step(params, jnp.asarray(SEQUENCE), jnp.asarray(PRESENT[keys]), jnp.float64(0.5), jnp.float64(0.25), tied)

    def cost(flat):
        y, z = flat.reshape(2, M, M)
        return -numpy_log_p(y, z, SEQUENCE, keys == "both", tied)[SEQUENCE[2]]

    gradient = scipy.optimize.approx_fprime(np.stack([y, z]).ravel(), cost, 1e-7).reshape(2, M, M)
    np.testing.assert_allclose(after.y, y - 0.5 * gradient[0], atol=2e-7)
    np.testing.assert_allclose(after.z, z - 0.25 * gradient[1], atol=2e-7)


def test_step_is_that_of_the_dense_network_on_counts(x64):
    y, z = random_params(2)
    params = model.Params(jnp.asarray(y), jnp.asarray(z))
    counts = jnp.zeros((1, M)).at[0, SEQUENCE[:2]].set(1.0)
    query, label = jnp.asarray(SEQUENCE[1:2]), jnp.asarray(SEQUENCE[2:])
    dense = jax.jit(jax.grad(snap.cross_entropy))(params, counts, query, label, jnp.ones(1))
    after = model.sgd_step(params, jnp.asarray(SEQUENCE), jnp.asarray(PRESENT["both"]), jnp.float64(1.0), jnp.float64(1.0), False)
    np.testing.assert_allclose(after.y, y - dense.y, rtol=1e-12)
    np.testing.assert_allclose(after.z, z - dense.z, rtol=1e-12, atol=1e-15)


def test_attention_over_one_key_has_no_gradient(x64):
    y, z = random_params(3)
    g = jax.jit(jax.grad(model.loss))(
        model.read(model.Params(jnp.asarray(y), jnp.asarray(z)), jnp.asarray(SEQUENCE)),
        jnp.asarray(PRESENT["x1"]),
        int(SEQUENCE[2]),
    )
    assert np.all(np.asarray(g.z) == 0)
    assert np.all(np.asarray(g.rows[1]) == 0)


def test_bound_and_exponents():
    s, size = np.array([1e3, 5e5]), 1000.0
    p = theory.bound(s, size, 0.85)
    np.testing.assert_allclose(p, 1 - 999 / (2 * s**0.85), rtol=1e-6)
    np.testing.assert_allclose(theory.effective_exponent(p, s, size), 0.85, rtol=1e-5)


def test_exponent_tends_to_its_limit(x64):
    with mpmath.workdps(30):
        for s in (1e6, 1e12):
            u = mpmath.findroot(lambda u, s=s: 999 * u + mpmath.exp(u) - 1 - s, mpmath.log(s))
            p = 1 / (1 + 999 * mpmath.exp(-u))
            exact = mpmath.log(999 / (2 * (1 - p))) / mpmath.log(s)
            assert abs(float(theory.effective_exponent(float(p), s, 1000.0)) - float(exact)) < 1e-5
            assert exact < float(theory.limit_exponent(s)) < exact + 0.01 * 1e6 / s + 1e-9 * s / 1e6 + 2e-3


@pytest.mark.parametrize("visits", [0, 1, 40])
def test_entries_of_a_row(x64, visits):
    y, u = np.zeros(M), 0.0
    for _ in range(visits):
        p = np.exp(y) / np.exp(y).sum()
        y += 0.5 * (np.eye(M)[3] - p)
        u += 0.5 * M / (M - 1 + np.exp(u))
    np.testing.assert_allclose(theory.entry_target(u, M), y[3], rtol=1e-12)
    np.testing.assert_allclose(theory.entry_other(u, M), y[0], rtol=1e-12)


def test_gaussian_and_orthonormal_tokens(x64):
    draw = jax.jit(lambda kind, d: bilinear.draw_tokens(jax.random.key(0), kind, 30, d, 500))
    gauss = np.asarray(draw(0, 400.0))
    assert np.all(gauss[:, 400:] == 0) and abs(np.mean(np.sum(gauss**2, 1)) - 1) < 0.06
    for d in (30.0, 64.0):
        frame = np.asarray(draw(1, d))
        np.testing.assert_allclose(frame @ frame.T, np.eye(30), atol=1e-12)
    assert np.linalg.matrix_rank(np.asarray(draw(1, 20.0))) == 20


def test_orthonormal_tokens_in_few_dimensions(x64):
    frame = np.asarray(bilinear.draw_tokens(jax.random.key(0), 1, 6, jnp.float64(4.0), 4))
    assert frame.shape == (6, 4) and np.all(np.linalg.norm(frame, axis=1) <= 1 + 1e-12)


def numpy_losses(w, n):
    def mean(rows, targets):
        return np.mean([np.log(np.exp(w[i]).sum()) - w[i, j] for i, j in zip(rows, targets, strict=True)])

    return mean(range(n), range(n, 2 * n)), mean(range(n, 2 * n), range(n))


def test_bilinear_losses(x64):
    w = jnp.asarray(np.random.default_rng(0).normal(size=(9, 9)))
    forward, reverse = numpy_losses(np.asarray(w), 3)
    np.testing.assert_allclose(bilinear.loss(w, 3), forward, rtol=1e-12)
    np.testing.assert_allclose(bilinear.reverse_loss(w, 3), reverse, rtol=1e-12)
    np.testing.assert_allclose(bilinear.objective(w, 3, 0.5), forward + 0.5 * reverse, rtol=1e-12)


def test_flow_of_theta_and_of_its_effective_weights_agree(x64):
    n, m, d = 2, 6, 5
    v = bilinear.draw_tokens(jax.random.key(1), 0, m, jnp.float64(d), d)
    t = np.array([0.0, 5.0, 20.0])

    def theta_of(a, symmetric):
        return a + symmetric * (a.T - a) / 2

    def cost(a, symmetric):
        return bilinear.objective(bilinear.effective(theta_of(a, symmetric), v), n, 0.3)

    @jax.jit
    def both(symmetric):
        start = theta_of(0.1 * jax.random.normal(jax.random.key(2), (d, d), jnp.float64), symmetric)
        full = jax.vmap(theta_of, (0, None))(flow.gradient_flow(cost, start, t, symmetric).ys, symmetric)
        args = bilinear.Flow(v @ v.T, jnp.float64(0.3), symmetric)
        reduced = flow.solve(lambda t, w, a: bilinear.field(w, a, n), bilinear.effective(start, v), t, args)
        return reduced.ys, jax.vmap(bilinear.effective, (0, None))(full, v)

    for symmetric in (0.0, 1.0):
        np.testing.assert_allclose(*both(jnp.float64(symmetric)), atol=1e-8)


def test_orthonormal_closed_form(x64):
    n, m = 2, 6
    t = np.array([0.0, 1.0, 10.0, 100.0])

    def rate(_, flat):
        w = flat.reshape(m, m)
        g = np.zeros((m, m))
        for i in range(n):
            g[i] = np.exp(w[i]) / np.exp(w[i]).sum() / n
            g[i, n + i] -= 1 / n
        return -g.ravel()

    path = scipy.integrate.solve_ivp(rate, (0, 100), np.zeros(m * m), t_eval=t, rtol=1e-10, atol=1e-12).y.T.reshape(-1, m, m)
    losses = [numpy_losses(w, n) for w in path]
    np.testing.assert_allclose(bilinear_theory.orthonormal_loss(t, m, n), [x for x, _ in losses], rtol=1e-7)
    np.testing.assert_allclose([x for _, x in losses], np.log(m), rtol=1e-12)


def test_orthonormal_loss_at_the_reference_point(x64):
    np.testing.assert_allclose(bilinear_theory.orthonormal_loss(1000.0, 20, 5), 0.0049303775, rtol=1e-7)
    assert bilinear_theory.half_guess(20) == pytest.approx(2.302585)
    np.testing.assert_allclose(bilinear_theory.reverse_floor(3.0, 0.01, 0.5), 0.3)
