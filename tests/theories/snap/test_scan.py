"""Scan & Snap's chapter on scanning: the flow of the network, and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data import classes
from jaxdyn.data.classes import Vocabulary
from jaxdyn.status import UNCONVERGED
from jaxdyn.theories.snap import model, population, published, tasks
from jaxdyn.theories.snap.scan import overlap, random_laws_flow, theorem3_gain_bounds, thm2_common, unequal_flow
from tests.theories.snap.helpers import both_ways, passes

# The overlap of the synthetic data against NumPy's singular values.


@pytest.mark.parametrize(("k", "weight"), [(2, 1.0), (6, 0.3), (20, 0.01)])
def test_overlap_is_the_largest_singular_value(x64, k, weight):
    v = Vocabulary(k)
    p = np.asarray(jax.jit(lambda: classes.laws(v, classes.law(v, weight)))())
    f = p / np.linalg.norm(p, axis=1, keepdims=True)
    expected = k * np.linalg.norm(f @ f.T - np.eye(k), 2)
    run = jax.jit(overlap.overlap_trial)(overlap.Overlap(number=float(k), weight=weight), jax.random.key(0))
    assert float(run.measured["overlap"].value) == pytest.approx(expected, rel=1e-12)
    assert float(run.predicted["overlap"].value) == pytest.approx(expected, rel=1e-12)


def test_parts_of_classes_are_refused():
    with pytest.raises(jd.UsageError, match="number=2.5 is not allowed: number is a whole number"):
        overlap.Overlap(number=2.5)


# The flow on random laws: its relative gains.


@pytest.mark.slow
def test_gains_are_those_of_the_attention(laws_flow_runs):
    ds = laws_flow_runs["alone"]
    assert (ds.status == 0).all()
    attention = (ds.p_own * np.exp(ds.z_own)).isel(save=slice(1, None)).rename(save="time")
    gain = (attention.isel(distinct=-1) / attention.isel(distinct=slice(-1))) ** 2 - 1
    gain = gain.rename(distinct="other").transpose(*ds.measured_gain.dims)
    np.testing.assert_allclose(ds.measured_gain, gain, rtol=1e-9, atol=1e-12)
    start = (ds.p_own.isel(distinct=-1) / ds.p_own.isel(distinct=slice(-1))) ** 2 - 1
    start = start.rename(distinct="other")
    left = 1 - (gain - start) / (ds.predicted_gain - start)
    end = {"time": -1}
    np.testing.assert_allclose(
        ds.measured_shortfall.isel(end).sel(ratio=0.1), left.isel(end).sel(ratio=0.1).transpose("seed", "class", "other"), rtol=1e-6
    )


# The judges of Theorem 3, on the reduced dynamics and on the network's own flow.

CLAIMS = {c.id: c for c in theorem3_gain_bounds.CLAIMS}


def test_judge_of_gains_notices_a_tenth(law_runs):
    assert passes(theorem3_gain_bounds.judge_gain, law_runs["main"])
    for distorted in both_ways(law_runs["main"], "gain"):
        assert not passes(theorem3_gain_bounds.judge_gain, distorted)


@pytest.mark.slow
def test_the_published_residuals(flow_runs):
    ds = flow_runs["main"]
    np.testing.assert_allclose(ds.top, 0.2, atol=1e-9)
    residual = population.residual(ds).isel(other=0, seed=0)
    np.testing.assert_allclose(residual, [published.RESIDUALS[r] for r in ds.ratio.values], atol=2e-3)


@pytest.mark.slow
def test_a_plateau_needs_two_ratios(laws_flow_runs):
    with pytest.raises(jd.Inconclusive, match="at least 2 values of ratio"):
        theorem3_gain_bounds.judge_plateau(laws_flow_runs["alone"].sel(ratio=[0.1]))


@pytest.mark.slow
def test_gains_and_bounds_by_ratio(laws_flow_runs):
    ds = laws_flow_runs["alone"]
    grown = [r.value for r in theorem3_gain_bounds.judge_ratio(ds)]
    assert grown[0] < 0.3 and 0.9 < grown[1] < grown[2] < 1
    assert [r.value for r in theorem3_gain_bounds.judge_ratio(theorem3_gain_bounds.STAYS(ds))] == [0.0] * 3
    assert theorem3_gain_bounds.first_order(0.1)(ds) < 0  # more than all of the growth would be missing
    assert theorem3_gain_bounds.first_order(1000.0)(ds) == pytest.approx(grown[2], abs=0.01)
    two = xr.concat([ds, laws_flow_runs["main"].sel(common_token=ds.common_token)], xr.Variable("common", [0.1, 0.15]))
    lower = {r.name: r.value for r in theorem3_gain_bounds.judge_flow_bounds(two)[::2]}
    assert len(lower) == 2 * ds.sizes["ratio"]
    alone = list(lower.values())[::2]
    assert alone[0] < 0.5 and alone[1] > 0.9


@pytest.mark.parametrize("claim", ["snap.rel_gain", "snap.bounds"])
def test_figures_of_the_reduced_dynamics_draw(law_runs, claim):
    fig = Figure()
    CLAIMS[claim].plot(law_runs["main"], fig)
    assert fig.axes


@pytest.mark.slow
def test_figure_of_the_flow_draws(laws_flow_runs):
    fig = Figure()
    CLAIMS["snap.theorem3"].plot(laws_flow_runs["alone"], fig)
    assert fig.axes


# The judges of Theorem 2, on the reduced dynamics and on the network's own flow.

THM2_COMMON_CLAIMS = {c.id: c for c in thm2_common.CLAIMS}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judge", "wrong", "name"),
    [(thm2_common.judge_up, (), "rise"), (thm2_common.judge_fall, ("unequal",), "fall")],
)
def test_thm2_common_judges_of_the_flow(laws_flow_runs, judge, wrong, name):
    main = laws_flow_runs["main"]
    assert passes(judge, main)
    for breach in wrong:
        assert not passes(judge, laws_flow_runs[breach]), breach
    for other in (thm2_common.DESCENT, thm2_common.STILL):
        assert not passes(judge, other(main))
    for distorted in both_ways(main, name):
        assert not passes(judge, distorted)
    assert not passes(thm2_common.judge_fall, thm2_common.ALL_RISE(main))


def test_judge_of_unequal_common_tokens():
    dims, gains = ("seed", "class", "common_token"), np.zeros((2, 3, 2))
    gains[:, 0, 0] = 1
    ds = xr.Dataset({f"{side}_gains": (dims, gains) for side in ("predicted", "measured")})
    assert passes(unequal_flow.judge, ds)
    assert not passes(unequal_flow.judge, ds.assign(predicted_gains=0 * ds.predicted_gains))
    assert not passes(unequal_flow.judge, jd.rolled(measured_gains="class")(ds))
    assert unequal_flow.judge(ds.assign(measured_gains=np.nan * ds.measured_gains))[0].passed is None


@pytest.mark.slow
def test_memory_tells_which_of_two_unequal_common_tokens_gains():
    grid = jd.grid(random_laws_flow.LawsFlow, ratio=[0.1, 10.0], common=0.02, second=0.02, unequal=1.5)
    ds = jd.sweep(unequal_flow.trial, grid, 2)
    assert passes(unequal_flow.judge, ds) and float(ds.assumed_overlap.max()) < 1
    np.testing.assert_array_equal(ds.measured_gains.isel({"class": 0, "common_token": 0}).max("seed"), [1, 0])
    assert float(ds.gains_instant.max()) == 0
    rare = {"class": 0, "common_token": 0, "save": -1}
    np.testing.assert_allclose(ds.predicted_z.isel(rare).sel(ratio=0.1), ds.measured_z.isel(rare).sel(ratio=0.1), rtol=0.05)
    fig = Figure()
    unequal_flow.plot(ds, fig)
    assert fig.axes


def test_distinct_tokens_gain_by_the_pressure_times_f_squared(law_runs):
    main = law_runs["main"]
    np.testing.assert_allclose(main.measured_rise, main.predicted_rise, rtol=1e-9)
    assert (main.z_own.diff("save") > 0).all()


def test_the_table_of_unequal_common_tokens(law_runs):
    assert passes(thm2_common.judge_unequal, law_runs["table"].isel(per_query=[0]))
    assert not passes(thm2_common.judge_unequal, law_runs["main"].isel(per_query=[0]))
    end = law_runs["table"].isel(eta_z=0).isel({"per_query": 0, "seed": 0, "class": 0, "save": -1})
    np.testing.assert_allclose([*end.z_common, end.z_own[-1]], [0.0045, -0.1448, 0.1402], atol=5e-5)


@pytest.mark.parametrize(
    ("claim", "runs", "kind"),
    [
        ("snap.common_down", "law_runs", "main"),
        pytest.param("snap.distinct_up", "laws_flow_runs", "main", marks=pytest.mark.slow),  # ten seconds of runs
        ("snap.unequal_commons", "law_runs", "table"),
    ],
)
def test_figures_draw(request, claim, runs, kind):
    fig = Figure()
    THM2_COMMON_CLAIMS[claim].plot(request.getfixturevalue(runs)[kind], fig)
    assert fig.axes


@pytest.mark.slow
def test_the_flow_is_the_networks(x64):
    task = tasks.weighted_task(jnp.array([[0.4, 1.0], [0.4, 1.0]]), jnp.array([1.0]))
    p, label, size = np.asarray(task.p), np.asarray(task.label), 9
    ratio, ts = 3.0, np.array([0.0, 1.0, 8.0])
    sol = jax.jit(lambda: population.population_flow(task, model.Params(jnp.float64(ratio), jnp.float64(1.0)), ts))()

    def field(t, state):
        y, z = state[: size * size].reshape(size, size), state[size * size :].reshape(2, size)
        dy, dz = np.zeros_like(y), np.zeros_like(z)
        for n in range(2):
            c = p[n] * np.exp(z[n])
            f = c / np.linalg.norm(c)
            alpha = np.exp(f @ y)
            error = np.eye(size)[label[n]] - alpha / alpha.sum()
            g = y @ error
            dy += 0.5 * np.outer(f, error)
            dz[n] = 0.5 * f * (g - f * (f @ g))
        return np.concatenate([ratio * dy.ravel(), dz.ravel()])

    exact = scipy.integrate.solve_ivp(field, (0, 8), np.zeros(size * (size + 2)), "DOP853", ts, rtol=1e-10, atol=1e-12).y.T
    np.testing.assert_allclose(sol.ys.y.reshape(3, -1), exact[:, : size * size], atol=1e-7)
    np.testing.assert_allclose(sol.ys.z.reshape(3, -1), exact[:, size * size :], atol=1e-7)
    assert not bool(sol.event)


@pytest.mark.slow
def test_a_height_that_is_not_reached_is_unconverged(flow_runs):
    assert (flow_runs["never"].status == UNCONVERGED).all()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"weights": (3.0, 2.0, 1.0)}, "they rise"),
    ],
)
def test_wrong_settings_are_refused(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        population.Population(**fields)
