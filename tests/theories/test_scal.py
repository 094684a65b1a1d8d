"""Scaling laws: the linear model and its theory, fits of known tables, trained models, and judges on made-up runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.optimize import least_squares, minimize, minimize_scalar
from scipy.special import zeta

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.theories.scal import approaches, closed_form, fits, fitted, optima, table_rounding_tokens, trained, whitebox
from jaxdyn.theories.scal.dynamics import laws
from jaxdyn.theories.scal.dynamics import whitebox as whitebox_law
from jaxdyn.theories.scal.fitted import Exact, Noisy, noisy_trial
from jaxdyn.theories.scal.fitted import trial as fitted_trial
from jaxdyn.theories.scal.published import LAWS
from jaxdyn.theories.scal.random_laws import Parabola, parabola_trial, sample_law
from jaxdyn.theories.scal.table_rounding_tokens import FIT, Life, Published, Table, outside, rounding_trial, sums_trial
from jaxdyn.theories.scal.table_rounding_tokens import judge_tokens as life_judge
from jaxdyn.theories.scal.table_rounding_tokens import tokens_trial as life_trial
from jaxdyn.theories.scal.trained import Rung
from tests.theories.galore.helpers import passed, runs

# The linear model: its losses are those of the models of its first features, and descent is exact in each weight.


def test_losses_are_means_over_all_features(x64):
    eigenvalues = whitebox.spectrum(50, 1.5)
    goal = whitebox.target(eigenvalues, 1.75)
    np.testing.assert_allclose(eigenvalues * goal**2, np.arange(1, 51.0) ** -1.75, rtol=1e-12)
    w = jnp.asarray(np.random.default_rng(0).normal(size=50))
    first = 0.5 * np.sum((eigenvalues * (w - goal) ** 2)[:7])
    found = whitebox.losses(w, eigenvalues, goal, 1.75)
    np.testing.assert_allclose(found[6], 2 * first + zeta(1.75, 8), rtol=1e-12)
    np.testing.assert_allclose(whitebox.losses(0 * w, eigenvalues, goal, 1.75), np.full(50, zeta(1.75, 1)), rtol=1e-12)


def test_a_step_shrinks_each_error_by_its_eigenvalue(x64):
    eigenvalues = whitebox.spectrum(20, 2.0, 0.01)
    assert (eigenvalues[1:] < np.arange(2, 21.0) ** -2).all()
    goal, w = whitebox.target(eigenvalues, 1.5), jnp.zeros(20)
    after = w - 0.5 * jax.grad(whitebox.loss)(w, eigenvalues, goal)
    np.testing.assert_allclose(goal - after, (1 - 0.5 * eigenvalues) * goal, rtol=1e-12)


# Scaling laws and white-box coefficients.

# Closed forms of loss laws against scipy's minimisation and against numbers checked independently.

KAPLAN = laws.Kaplan(n=8.8e13, d=5.4e13, alpha_n=0.076, alpha_d=0.095)


@pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))
def test_the_additive_optimum_against_scipy(law):
    budget = 5.76e23
    n, d = laws.optimum(law, budget)
    found = minimize_scalar(lambda x: laws.loss(law, np.exp(x), budget / (6 * np.exp(x))), bracket=(15, 30), tol=1e-12)
    assert np.log(n) == pytest.approx(found.x, abs=1e-6)
    assert 6 * n * d == pytest.approx(budget, rel=1e-12)
    assert np.log(laws.optimum(law, 1e21)[0] / laws.optimum(law, 1e20)[0]) / np.log(10) == pytest.approx(laws.exponent(law))


def test_kaplans_optimum_against_scipy():
    n, d = laws.kaplan_optimum(KAPLAN, 1e21)
    found = minimize_scalar(lambda x: laws.kaplan_loss(KAPLAN, np.exp(x), 1e21 / (6 * np.exp(x))), bracket=(15, 30), tol=1e-12)
    assert np.log(n) == pytest.approx(found.x, abs=1e-6)
    assert 6 * n * d == pytest.approx(1e21, rel=1e-12)


@pytest.mark.parametrize(("alpha", "beta", "shift"), [(0.34, 0.28, 0.036), (0.5, 0.25, 0.149)])
def test_the_shift_of_a_parabola_against_polyfit(x64, alpha, beta, shift):
    x = np.log(10) * np.linspace(-1, 1, 15)
    g = np.exp(-alpha * x) / alpha + np.exp(beta * x) / beta
    c = np.polyfit(x, 3 + 0.2 * g, 2)
    found = laws.parabola_shift(alpha, beta, jnp.asarray(x))
    assert found == pytest.approx(-c[1] / (2 * c[0]), rel=1e-9)
    assert found == pytest.approx(shift, abs=5e-4)
    assert laws.parabola_shift(0.3, 0.3, jnp.asarray(x)) == 0


# The loss of the linear model against direct sums, a number checked independently, and its limits.

P, Q = 1.5, 1.75


@pytest.mark.slow
def test_the_loss_against_a_direct_sum(x64):
    j = np.arange(1, 1_000_001.0)
    tail = zeta(Q, j.size + 1)
    for rate, decay in ((0.0, np.exp(-2 * j**-P * 100.0)), (0.5, (1 - 0.5 * j**-P) ** 400)):
        whole = [np.sum(j[:n] ** -Q * decay[:n]) + np.sum(j[n:] ** -Q) + tail for n in (8, 64)]
        np.testing.assert_allclose(whitebox_law.loss(jnp.array([8, 64]), 100.0, P, Q, rate), whole, rtol=1e-12)
    limits = whitebox_law.late(64, Q) + whitebox_law.large(100.0, P, Q)
    assert float(whitebox_law.loss(jnp.array([64]), 100.0, P, Q)[0]) == pytest.approx(0.0903, abs=5e-5)
    assert float(limits) == pytest.approx(0.1425, abs=2e-4)


def test_the_limits(x64):
    sizes = jnp.array([64, 512])
    np.testing.assert_allclose(whitebox_law.loss(sizes, 1e12, P, Q), whitebox_law.late(sizes + 0.5, Q), rtol=1e-4)
    assert float(whitebox_law.large(100.0, P, Q)) == pytest.approx(
        float(whitebox_law.loss(jnp.array([2048]), 100.0, P, Q)[0]), rel=0.01
    )
    assert whitebox_law.exponent(1.5) == 0.4


# The three approaches on tables whose exponents are known.

LAW = laws.Law(e=1.0, a=40.0, b=60.0, alpha=0.4, beta=0.4)


def table_of(law, sizes, budgets):
    return laws.loss(law, sizes[:, None], budgets / (laws.COST * sizes[:, None]))


@pytest.mark.slow
def test_a_symmetric_law():
    sizes, budgets = np.geomspace(1e3, 1e6, 31), np.geomspace(6e8, 6e10, 7)
    found = approaches.estimates(sizes, budgets, table_of(LAW, sizes, budgets))
    assert found.exponents.shape == (3,)
    assert (abs(found.exponents - 0.5) <= (0.02, 0.02, 1e-6)).all()
    np.testing.assert_allclose(np.exp(found.vertices), laws.optimum(LAW, budgets)[0], rtol=0.2)
    assert found.held_out < 1e-6


@pytest.mark.slow
def test_several_tables_at_once_and_one():
    sizes, budgets = np.geomspace(7e7, 1.6e10, 9), np.geomspace(6e18, 3e21, 5)
    one = table_of(LAWS["Besiroglu"], sizes, budgets)
    many = approaches.estimates(sizes, budgets, np.stack([one, one * 1.5]))
    assert many.exponents.shape == (2, 3) and many.theta.shape == (2, 5)
    np.testing.assert_allclose(many.exponents[0], approaches.estimates(sizes, budgets, one).exponents, rtol=1e-6)
    np.testing.assert_allclose(many.exponents[:, 2], laws.exponent(LAWS["Besiroglu"]), rtol=1e-5)


@pytest.mark.slow
def test_jackknife():
    sizes, budgets = np.geomspace(1e3, 1e6, 7), np.geomspace(6e8, 6e10, 5)
    table = table_of(LAW, sizes, budgets)
    same, pseudo = approaches.jackknife(sizes, budgets, np.stack([table] * 3))
    np.testing.assert_allclose(pseudo.exponents, np.stack([same.exponents] * 3), atol=1e-6)
    noisy = table * (1 + 0.01 * np.random.default_rng(0).normal(size=(3, 7, 1)))
    whole, pseudo = approaches.jackknife(sizes, budgets, noisy)
    np.testing.assert_allclose(whole.exponents, approaches.estimates(sizes, budgets, noisy.mean(0)).exponents)
    without = approaches.estimates(sizes, budgets, noisy[1:].mean(0)).exponents
    np.testing.assert_allclose(pseudo.exponents[0], 3 * whole.exponents - 2 * without, rtol=1e-5)
    low, high = approaches.interval(whole.exponents, pseudo.exponents)
    assert (low < whole.exponents).all() and (whole.exponents < high).all()


def test_the_jackknife_of_a_mean_is_students():
    runs = np.array([1.0, 2.0, 4.0])
    low, high = approaches.interval(runs.mean(), runs)  # pseudo-values of a mean are the runs
    np.testing.assert_allclose((high - low) / 2, 4.302653 * runs.std(ddof=1) / 3**0.5, rtol=1e-6)


# Judges of optima and parabolas, on made-up runs.

BUDGETS = 10.0 ** np.arange(18, 22)


def allocations(error=0.0):
    n = np.tile((BUDGETS / 6) ** 0.45, (2, 1))
    d = BUDGETS / 6 / n
    ds = {"predicted_n": n, "predicted_d": d, "measured_n": n * (1 + error), "measured_d": d / (1 + error)}
    ds |= {"n_fixed": 0 * n + 1e9, "n_equal": np.tile((BUDGETS / 120) ** 0.5, (2, 1)), "n_exchanged": d}
    return xr.Dataset({k: (("law", "budget"), v) for k, v in ds.items()}, coords={"law": list(closed_form.LAWS), "budget": BUDGETS})


def test_optima():
    assert passed(closed_form.judge(allocations())) == [True, True]
    assert passed(closed_form.judge(allocations(1e-8))) == [False, False]
    for name in ("n_fixed", "n_equal", "n_exchanged"):
        rival = closed_form.allocated(name)(allocations())
        assert passed(closed_form.judge(rival)) == [False, False]
        np.testing.assert_allclose(6 * rival.predicted_n * rival.predicted_d, np.tile(BUDGETS, (2, 1)))


def test_parabolas():
    ds = xr.Dataset(
        {
            "predicted_slope": ("seed", [0.45]),
            "measured_slope": ("seed", [0.45]),
            "predicted_shift": (("seed", "budget"), [[0.036, 0.036]]),
            "measured_shift": (("seed", "budget"), [[0.036, 0.036]]),
        }
    )
    assert passed(closed_form.judge_parabola(ds)) == [True, True]
    assert passed(closed_form.judge_parabola(ds.assign(measured_slope=ds.measured_slope + 1e-3))) == [False, True]
    assert passed(closed_form.judge_parabola(ds.assign(predicted_shift=0 * ds.predicted_shift))) == [True, False]


# Fits of random laws, at few sizes; judges of the fit, on made-up runs.


@pytest.mark.slow
def test_exact_laws_are_recovered_with_strict_stops():
    ds = jd.sweep(fitted_trial, jd.grid(Exact, stops=["strict", "default"], objective=["sum", "mean"], sizes=5, starts=3), 2)
    error = abs(ds.measured_exponent - ds.predicted_exponent).max("seed")
    assert (error.sel(stops="strict") < 1e-3).all()
    assert float(error.sel(stops="default", objective="mean")) > 5e-3
    assert (ds.steps.sel(stops="default") < ds.steps.sel(stops="strict")).all()
    np.testing.assert_allclose(ds.projected.sel(stops="strict"), ds.predicted_parameters.sel(stops="strict"), rtol=1e-6)


@pytest.mark.slow
def test_intervals_grow_with_noise():
    ds = jd.sweep(noisy_trial, jd.grid(Noisy, noise=[0.001, 0.01], sizes=6, resamples=30), 4)
    width = (ds.high - ds.low).mean("seed")
    assert (ds.low <= ds.high).all() and float(width.sel(noise=0.01)) > 3 * float(width.sel(noise=0.001))
    assert float(abs(ds.measured_exponent - ds.predicted_exponent).sel(noise=0.001).max()) < 0.02


def exact(shift=0.0):
    law = np.tile([400.0, 2000.0, 1.8, 0.35, 0.37], (20, 1))
    start = np.tile([1.0, 1.0, 1.0, 0.5, 0.5], (20, 1))
    ds = {"predicted_parameters": law, "measured_parameters": law * (1 + shift), "projected": law, "start": start}
    a = np.full(20, 0.51)
    return runs(
        **{k: (("parameter",), v) for k, v in ds.items()},
        predicted_exponent=((), a),
        measured_exponent=((), a + shift),
        status=((), 0 * a),
    )


def by_stops(default, strict):
    parts = [exact(default), exact(strict)]
    return xr.concat(parts, "stops").assign_coords(stops=["default", "strict"]).transpose("stops", ...)


def test_recovery():
    assert passed(fitted.judge_recover(exact())) == [True, True, True]
    assert passed(fitted.judge_recover(exact(0.01))) == [False, False, True]
    assert passed(fitted.judge_recover(fitted.STAYS(exact()))) == [False, False, False]


def test_the_trap():
    ds = xr.concat([by_stops(0.05, 0.0)] * 3, "seed")
    assert passed(fitted.judge_trap(ds)) == [True, True]
    assert passed(fitted.judge_trap(xr.concat([by_stops(0.0, 0.05)] * 3, "seed"))) == [False, False]
    assert fitted.BIASED[fitted.STRICTLY](ds) == 1


def test_sums():
    half = exact()
    half["measured_exponent"] = half.measured_exponent + 0.01 * (np.arange(20) % 2)
    (share,) = fitted.judge_default(half)
    assert share.value == 0.5 and share.interval == jd.stats.wilson(10, 20)


def test_coverage():
    a = np.random.default_rng(0).normal(0.5, 0.01, 200)
    ds = runs(
        predicted_exponent=((), np.full(200, 0.5)),
        measured_exponent=((), a),
        low=((), a - 0.02),
        high=((), a + 0.02),
        status=((), 0 * a),
    )
    assert passed(fitted.judge_coverage(ds)) == [True, True]
    assert passed(fitted.judge_coverage(fitted.WIDE(ds))) == [True, False]
    assert fitted.NARROW[fitted.HOLD](ds) == np.mean(abs(a - 0.5) <= fitted.PUBLISHED) < 0.1
    assert jd.stats.wilson(190, 200)[0] > 0.85


# Tokens of a lifetime: the product by hand, and what the judge lets pass.


def test_the_product():
    ds = jd.sweep(life_trial, jd.grid(Life), 1)
    assert float(ds.predicted_tokens.max()) == 9_072_000_000
    assert float(ds.every_day.max()) == 11_037_600_000
    assert float(ds.sleepless.max()) == 70 * 365 * 86_400 * 10
    assert life_judge(ds)[0].passed and not life_judge(ds.assign(predicted_tokens=ds.every_day))[0].passed


# Vertices, lowest curves and slopes against numpy.


def test_vertex_against_polyfit(x64):
    rng = np.random.default_rng(0)
    x, y, w = np.linspace(20, 25, 9), rng.normal(size=9), rng.uniform(0.5, 2, size=9)
    c = np.polyfit(x, y, 2, w=np.sqrt(w))
    np.testing.assert_allclose(optima.vertex(*(jnp.asarray(v) for v in (x, y, w))), -c[1] / (2 * c[0]), rtol=1e-9)


@pytest.mark.slow
def test_vertices_use_the_sizes_near_the_lowest(x64):
    x = jnp.arange(9.0)
    y = jnp.stack([(x - 3.2) ** 2, (x - 5.7) ** 2]).at[:, 0].set(1e3)
    np.testing.assert_array_equal(optima.near(x, y[0], 2.0), [0, 1, 1, 1, 1, 1, 0, 0, 0])
    np.testing.assert_allclose(optima.vertices(x, y, 2.0), [3.2, 5.7])
    np.testing.assert_array_equal(optima.envelope(x, y), [3, 6])


def test_slope(x64):
    x = jnp.array([0.0, 1.0, 4.0])
    np.testing.assert_allclose(optima.slope(x, 3 * x - 7), 3)


# Optima and parabolas of random laws, on few of them.


def test_random_laws(x64):
    law = sample_law(jax.random.key(3))
    assert 0.2 <= law.alpha <= 0.6 and 0.2 <= law.beta <= 0.6 and 1 <= law.e <= 2
    assert 0.1 <= law.a * 1e9**-law.alpha <= 1 and 0.1 <= law.b * 1e10**-law.beta <= 1


def test_parabolas_keep_the_slope_unless_sizes_drift():
    ds = jd.sweep(parabola_trial, jd.grid(Parabola, drift=[0.0, 0.1]), 1)
    error = abs(ds.measured_slope - ds.predicted_slope).squeeze()
    assert float(error.sel(drift=0.0)) < 1e-12 < 1e-4 < float(error.sel(drift=0.1))
    assert float(ds.measured_shift.sel(drift=0.0).mean()) == pytest.approx(0.0361, abs=1e-4)


# What follows from published parameters, and the judge of it.


def test_exponents_by_source():
    ds = jd.sweep(rounding_trial, jd.grid(Published), 1).squeeze()
    np.testing.assert_allclose(ds.measured_exponent, (0.4565, 0.4516, 0.5126), atol=1e-4)
    assert (float(ds.low), float(ds.high)) == (0.454, 0.455) and (ds.predicted_exponent == 0.46).all()


def test_rounding():
    ds = jd.sweep(rounding_trial, jd.grid(Published), 1)
    assert passed(table_rounding_tokens.judge_rounding(ds)) == [True, True, True, True]
    assert (
        table_rounding_tokens.SAME[table_rounding_tokens.ROUNDED](ds) < 0.005
        and table_rounding_tokens.WIDE[table_rounding_tokens.APART](ds) < 0
    )
    assert passed(table_rounding_tokens.judge_rounding(table_rounding_tokens.EXCHANGED(ds)))[0] is False


# Sums of printed exponents, in plain numbers.


def test_sums_and_ranges():
    ds = jd.sweep(sums_trial, jd.grid(Table), 1).squeeze()
    np.testing.assert_allclose(ds.measured_sum, 1.0, atol=1e-12)
    np.testing.assert_allclose(ds.low, (0.989, 0.945, 0.996, 1.0), atol=1e-12)
    np.testing.assert_allclose(ds.high, (1.014, 1.063, 0.998, 1.0), atol=1e-12)
    np.testing.assert_allclose(float(outside(ds).sel(row=FIT)), 0.001, atol=1e-12)


# The linear model's judges on made-up runs.

PARAMETERS = ("E", "A", "B", "alpha", "beta")


def made_powers(shift=(0.002, 0.003, -0.02), floor=0.01):
    p = np.array(whitebox.POWERS)
    a = np.repeat(1 / (1 + p)[:, None], 3, 1)
    loss = np.ones((3, 4, 5))
    ds = {
        "predicted_exponent": (("p", "approach"), a),
        "measured_exponent": (("p", "approach"), a + np.array(shift)),
        "predicted_loss": (("p", "time", "size"), loss),
        "measured_loss": (("p", "time", "size"), loss),
        "sum_of_limits": (("p", "time", "size"), 1.5 * loss),
        "parameters": (("p", "parameter"), np.full((3, 5), floor)),
    }
    return xr.Dataset(ds, coords={"p": p, "approach": list(whitebox.APPROACHES), "parameter": list(PARAMETERS)})


def test_exponents_and_losses():
    assert passed(whitebox.judge(made_powers())) == [True, True, True]
    assert passed(whitebox.judge(made_powers((0.002, 0.03, 0)))) == [True, True, False]
    assert passed(whitebox.judge(jd.swap(predicted_loss="sum_of_limits")(made_powers()))) == [False, True, True]


def test_the_additive_fit():
    readings = {r.name: r.value for r in whitebox.judge_fit(made_powers())}
    assert list(readings) == [name.format(p) for name in (whitebox.MISSED, whitebox.FLOOR) for p in whitebox.POWERS]
    np.testing.assert_allclose(list(readings.values()), [-0.02] * 3 + [0.01] * 3)


FITS_LAW = LAWS["Besiroglu"]
# One program each: by itself every operation would be compiled.
fits_fitted, levenberg, project = jax.jit(fits.fitted), jax.jit(fits.levenberg), jax.jit(fits.project)
lbfgs, starts, objective = jax.jit(fits.lbfgs), jax.jit(fits.starts, static_argnums=1), jax.jit(fits.objective)
resampled = jax.jit(fits.resampled, static_argnums=3)
TRUTH = np.array([np.log(FITS_LAW.a), np.log(FITS_LAW.b), np.log(FITS_LAW.e), FITS_LAW.alpha, FITS_LAW.beta])


def points(noise=0.0, sizes=7):
    n, d = np.meshgrid(np.geomspace(7e7, 1.6e10, sizes), np.geomspace(5e9, 5e11, sizes))
    n, d = n.ravel(), d.ravel()
    loss = np.log(laws.loss(FITS_LAW, n, d)) + noise * np.random.default_rng(0).normal(size=n.size)
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
    np.testing.assert_allclose(fits_fitted(p), TRUTH, rtol=1e-7)
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
    theta = fits_fitted(p)
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
    theta = fits_fitted(p)
    each = resampled(jax.random.key(0), theta, p, 40)
    a = jax.jit(lambda each: laws.exponent(fits.as_law(each.T)))(each)
    assert each.shape == (40, 5) and 0.005 < float(a.std()) < 0.05
    np.testing.assert_allclose(resampled(jax.random.key(0), TRUTH, points(), 5), np.tile(TRUTH, (5, 1)), rtol=1e-6)


TINY = {"width": 4, "vocabulary": 32, "least": 6.7, "budgets": 3, "windows": 2, "length": 16}


def test_counts_follow_the_compute_rule():
    s = Rung(**TINY)
    params = nn.network(s.shape).init(jax.random.key(0))
    size = trained.weights(s.shape)
    assert size == sum(x.size for x in jax.tree.leaves(params)) == 32 * 4 + 4 * 16 + 3 * 4 * 11 + 3 * 4
    for (stem, branch), budget in zip(trained.counts(s), s.operations, strict=True):
        assert 6 * size * (stem + branch) * s.batch * s.length == pytest.approx(budget, rel=0.05)
        assert branch == round(0.3 * (stem + branch))
    steps, kinds = trained.phases(s)
    assert kinds.tolist() == [0, *3 * [0, 1, 2]]
    stems = [stem for stem, _ in trained.counts(s)]
    assert steps[0] == 0 and np.cumsum(steps[1::3])[-1] + steps[3::3][:-1].sum() == stems[-1]


def test_rare_bytes_share_the_last_number():
    s = Rung(**TINY)
    tokens, data = trained.tokens_of(s, "train"), s.corpus().train
    assert tokens.min() == 0 and tokens.max() == 31 and (tokens[data == np.bincount(data).argmax()] == 0).all()
    assert np.unique(data[tokens == 31]).size > 1 and np.unique(data[tokens == 30]).size == 1


@pytest.mark.slow
def test_losses_fall_with_the_budget():
    ds = jd.sweep(trained.trial, jd.grid(Rung, factor=[0.5, 1.0], **TINY), 2)
    assert (ds.status == 0).all()
    loss = ds.measured_loss.sel(part="valid").mean("seed")
    assert (loss.isel(budget=-1) < loss.isel(budget=0)).all() and (ds.start > ds.measured_loss.isel(budget=0)).all()
    assert abs(ds.start - np.log(32)).max() < 0.5
    np.testing.assert_allclose(ds.rate.mean("seed"), (0.01, 0.02))
    np.testing.assert_allclose(6 * ds.weights * ds.tokens / ds.budget, 1, atol=0.05)


@pytest.mark.parametrize("wrong", [{"width": 5}, {"text": "markov"}, {"least": 4.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Rung(**wrong)


WIDTHS, N = [4, 8, 12, 16, 20], np.array([464.0, 1296, 2532, 4160, 6120])
TRAINED_BUDGETS = 2e8 * 2.0 ** np.arange(5)
TRAINED_LAW = laws.Law(e=1.8, a=13.0, b=120.0, alpha=0.5, beta=0.5)


def made(noise=0.001):
    rng = np.random.default_rng(0)
    losses = laws.loss(TRAINED_LAW, N[:, None], TRAINED_BUDGETS / (6 * N[:, None]))
    losses = losses[:, None] * (1 + noise * rng.normal(size=(5, 4, 5)))
    both = np.stack([losses, losses], -1)
    dims = ("width", "seed", "budget", "part")
    ds = {
        "measured_loss": (dims, both),
        "measured_undecayed": (dims, both + 0.02 + 0.002 * rng.normal(size=(5, 4, 5, 1))),
        "start": (("width", "seed", "part"), np.full((5, 4, 2), 4.2)),
        "weights": (("width", "seed"), np.repeat(N[:, None], 4, 1)),
        "status": (("width", "seed"), np.zeros((5, 4))),
    }
    return xr.Dataset(ds, coords={"width": WIDTHS, "budget": TRAINED_BUDGETS, "part": ["valid", "test"], "seed": range(4)})


@pytest.mark.slow
def test_a_ladder_that_follows_a_law():
    gate, *readings = trained.judge(made())
    assert gate.gate and gate.passed
    values = {r.name: r for r in readings}
    fit = values[trained.BEST.format("parametric fit")]
    assert abs(fit.value - 0.5) < 0.02 and fit.interval[0] < 0.5 < fit.interval[1]
    assert values[trained.WORTH].value == pytest.approx(0.02, abs=2e-3)


@pytest.mark.slow
def test_sizes_in_reverse():
    ds = made()
    other = trained.CLAIMS[0].controls["sizes in reverse"].breach(ds)
    np.testing.assert_array_equal(other.measured_loss.sel(width=4), ds.measured_loss.sel(width=20))
    names = [r.name for r in trained.judge(ds)]
    assert all(set(getattr(rival, "rival", rival)) <= set(names) for rival in trained.CLAIMS[0].rivals.values())


def test_each_model_at_its_own_rate():
    ds = xr.concat([made(), made() + 1.0], "factor").assign_coords(factor=[1.0, 2.0])
    ds["measured_loss"][1, 0, :, 2] = 1.5
    best = trained.table(ds)
    assert best.shape == (4, 5, 5)
    assert (best[:, 0, 2] == 1.5).all() and (best[:, 1] < 3.5).all()
    np.testing.assert_array_equal(trained.sizes(made()), N)
    single = trained.one_schedule(made())
    np.testing.assert_array_equal(single[..., -1], trained.table(made())[..., -1])
    assert (single[..., :-1] > trained.table(made())[..., :-1]).all()
