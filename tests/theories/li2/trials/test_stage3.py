"""The trial of all stages at a tiny size, and times of crossings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ridge
from jaxdyn.theories.li2.dynamics.both import Problem
from jaxdyn.theories.li2.trials import stage3

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
    seen = jax.jit(stage3.trial, static_argnums=0)(TINY, jax.random.key(1))
    trained, told = (np.asarray(side["weights"].value) for side in (seen.measured, seen.predicted))
    assert trained.shape == (1, 15 * 5)
    assert np.abs(trained - told).max() < 0.05 * np.abs(trained - np.asarray(seen.recorded["frozen"].value)).max()


@pytest.mark.parametrize("wrong", [{"lr": 0.0}, {"eta": -1.0}, {"records": 30}, {"share": 1.0}, {"hidden": 0}, {"momentum": 1.0}])
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(jd.UsageError):
        stage3.Stages(**wrong)
