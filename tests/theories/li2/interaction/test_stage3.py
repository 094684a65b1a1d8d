"""The trial of all stages at a tiny size, times of crossings, and the judges on planted weights and times."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ridge
from jaxdyn.theories.li2.dynamics.both import Problem
from jaxdyn.theories.li2.interaction import stage3
from tests.theories.li2.helpers import passes

TINY = stage3.Stages(group="5", hidden=5, horizon=0.4, records=20, lr=0.01)


@pytest.mark.parametrize(
    ("curve", "expected"),
    [([4, 2, 1, 0], 1.5), ([4, 1, 3, 1], 2.75), ([4, 4, 4, 4], 0.0), ([1, 1, 1, 1], 0.0), ([1, 0, 0, 2], 0.0)],
)
def test_a_time_is_that_of_the_last_crossing(curve, expected, x64):
    found = stage3.settled(jnp.asarray(curve, jnp.float64), jnp.asarray(1.5), jnp.arange(4.0))
    np.testing.assert_allclose(found, expected)


def test_curves_vanish_at_the_ridge_solution_and_guessing_costs_one(x64):
    samples = model.pairs(5)
    start = model.init(jax.random.key(0), 5, 6, "float64")
    y = model.targets(parse("5"), samples)
    given = Problem(samples, y, *(jnp.asarray(x, jnp.float64) for x in (0.2, 0.1, 1.0)))
    best = start._replace(v=ridge.solution(model.features(start.w, samples), y, given.eta))
    assert stage3.curves(best, given, samples, y)["apart"] < 1e-12
    silent = stage3.curves(start._replace(v=jnp.zeros_like(start.v)), given, samples, y)
    np.testing.assert_allclose(silent["test"], 1)
    assert silent["sent"] == 0


def test_flow_and_descent_are_close_and_the_frozen_flow_is_not(x64):
    run = jax.jit(stage3.trial, static_argnums=0)(TINY, jax.random.key(1))
    trained, flow = (np.asarray(side["weights"].value) for side in (run.measured, run.predicted))
    assert trained.shape == (1, 15 * 5)
    assert np.abs(trained - flow).max() < 0.05 * np.abs(trained - np.asarray(run.recorded["frozen"].value)).max()


@pytest.mark.parametrize("wrong", [{"records": 30}, {"share": 1.0}])
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(jd.UsageError):
        stage3.Stages(**wrong)


FLOW, TIMES, DECAYS = stage3.CLAIMS


def weights(order=1.0, bias=0.0):
    """Trained weights off the flow's by the step size to a power, a smaller second-order part, and a bias."""
    rng = np.random.default_rng(0)
    lr = np.array([0.02, 0.01, 0.005])
    flow, first, second = rng.normal(size=(3, 8, 1, 3, 10))
    off = first * lr[:, None, None] ** order + second * lr[:, None, None] ** (order + 1) + bias
    axes, records = ("seed", "lr", "time", "entry"), ("seed", "lr", "moment")
    predicted, one = np.broadcast_to(flow, off.shape), np.ones((8, 3, 4))
    data = {"measured_weights": (axes, flow + off), "predicted_weights": (axes, predicted)}
    data |= {"first": (axes, 0 * predicted), "frozen": (axes, predicted + 1)}
    names = [f"{kind}_{name}" for kind in ("curve", "flow") for name in ("accuracy", "apart", "test", "sent")]
    data |= {name: (records, one) for name in names} | {"t": (records, one * np.arange(4.0))}
    return xr.Dataset(data, {"lr": lr, "seed": np.arange(8)})


def times(powers=(-1.0, 0.0, 0.0), field="eta"):
    """Times of the stages that are powers of a field, with noise of one in a hundred."""
    rng = np.random.default_rng(0)
    eta = np.array([0.2, 0.4, 0.8])
    value = eta[:, None] ** np.array(powers) * np.exp(0.01 * rng.normal(size=(8, 3, 3)))
    axes = ("seed", field, "stage")
    data = {"measured_stage_time": (axes, value), "predicted_stage_time": (axes, value)}
    return xr.Dataset(
        data | {"curve_accuracy": (("seed", field, "moment"), np.ones((8, 3, 4)))},
        {field: eta, "stage": list(stage3.STAGES), "seed": np.arange(8)},
    )


def without_decay():
    return times((0.0, 0.0, 1.0), "decay")


@pytest.mark.parametrize(("order", "bias", "outcome"), [(1.0, 0.0, True), (2.0, 0.0, False), (0.5, 0.0, False), (1.0, 0.01, False)])
def test_order_one_and_the_limit_decide(order, bias, outcome):
    assert passes(FLOW, weights(order, bias)) == outcome


def test_rivals_are_refused():
    for claim, right in ((FLOW, weights()), (TIMES, times()), (DECAYS, without_decay())):
        for name, rival in claim.rivals.items():
            assert False in [check.passed for check in claim.judge(rival(right))], name


def test_slopes_are_those_planted():
    np.testing.assert_allclose(stage3.slopes(times((-1.0, 0.5, 0.2))).mean("seed"), (-1.0, 0.5, 0.2), atol=0.02)
    assert passes(TIMES, times())
    assert not passes(TIMES, times((-1.0, 0.5, 0.0)))
    assert passes(DECAYS, without_decay())
    assert [c.passed for c in DECAYS.judge(times((1.0, 0.0, 0.0), "decay"))] == [True, False, True]
    assert list(DECAYS.found) == [c.name for c in DECAYS.judge(without_decay()) if not c.gate]


def test_too_few_runs_and_steps_that_do_not_halve_decide_nothing():
    with pytest.raises(jd.Inconclusive):
        TIMES.judge(times().isel(seed=slice(4)))
    with pytest.raises(jd.Inconclusive):
        FLOW.judge(weights().assign_coords(lr=[0.02, 0.01, 0.002]))


@pytest.mark.parametrize(("claim", "data"), [(FLOW, weights), (TIMES, times), (DECAYS, without_decay)])
def test_figures_have_data(claim, data):
    fig = Figure()
    claim.plot(data(), fig)
    assert all(ax.has_data() for ax in fig.axes)
