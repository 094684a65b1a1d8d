"""A short training by every method in one program; stages; rates; groups of nodes by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.coc import model, readings, training
from jaxdyn.theories.coc.training import Training, trial

TINY = {"width": 8, "hidden": 8, "batch": 4, "samples": 2, "every": 2.0, "graphs": 12}


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_every_method_runs_in_one_program():
    ds = jd.sweep(trial, jd.grid(Training, recipe=list(model.METHODS), **TINY), 2)
    assert bool(np.isfinite(ds.loss).all()) and ds.measured_ablated.dims[-1] == "way"
    none = {"no_thoughts", "icot", "no_cot"}
    for name in model.METHODS:
        run = ds.sel(recipe=name)
        own = run.measured_answered.isel(inputs=0 if name in none else -1)
        np.testing.assert_array_equal(run.measured_accuracy, own)
    ablated = ds.sel(recipe="pause_as_thought").measured_ablated
    for way in ("another's", "pause"):  # a pause is the same in all examples
        np.testing.assert_array_equal(ablated.sel(way="kept"), ablated.sel(way=way))


def test_stages():
    s = Training(every=10.0, samples=10, first=0.4)
    steps = jnp.asarray([0, 39, 40, 69, 71, 99, 150])
    assert [int(training.stage(s, i)) for i in steps] == [0, 0, 1, 1, 2, 2, 2]


def test_the_rate_rises_and_falls():
    s = Training(lr=1.0, every=100.0, samples=10)
    rates = [float(training.rate(s, jnp.int32(i))) for i in (0, 24, 49, 750, 875, 999)]
    np.testing.assert_allclose(rates, [0.02, 0.5, 1, 1, 0.5, 0.1], atol=1e-6)


def test_gaps_by_hand():
    s = Training(graphs=3)
    posed = jax.device_get(jax.jit(lambda key: training.sample_problems(s, key, 3))(jax.random.key(0)))
    products = np.random.default_rng(0).normal(size=(2, 3, training.sizes(s).nodes)).astype(np.float32)
    got = np.asarray(jax.jit(readings.gaps)(products, posed))
    for i in (1, 2):
        for g in range(3):
            away, best = posed.away[g], posed.problem.path[g, i]
            nodes = np.arange(away.size)
            front, near, far = away == i, away < i, away > i
            nested = [nodes == best, front, front | near, far]
            disjoint = [nodes == best, front & (nodes != best), near, far]
            for kind, groups in enumerate((nested, disjoint)):
                means = [products[i - 1, g][group].mean() for group in groups]
                np.testing.assert_allclose(got[kind, i - 1, :, g], -np.diff(means), rtol=1e-4, atol=1e-5)
