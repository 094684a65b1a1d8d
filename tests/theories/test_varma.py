"""Efficiency of circuits: network, equations and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.li2 import model
from jaxdyn.theories.varma import dynamics as theory
from jaxdyn.theories.varma import ungrok_efficiency
from jaxdyn.theories.varma.ungrok_efficiency import SAMPLES, Ungrok, plan, trial

# Efficiency against NumPy and under scaling; crossings and halves of known curves.


@pytest.mark.slow
def test_efficiency_is_numpys_and_does_not_change_with_scale(x64):
    params = model.init(jax.random.key(0), 5, 8, "float64")
    pairs, labels = model.pairs(5), jnp.arange(25) % 5
    only = jnp.arange(25) < 10
    out = np.asarray(model.predict(params, pairs))
    margins = [out[i, i % 5] - np.max(np.delete(out[i], i % 5)) for i in range(10)]
    norm = np.sqrt(sum(np.sum(np.asarray(x) ** 2) for x in params))
    value = float(theory.efficiency(jnp.asarray(out), labels, only, params))
    assert value == pytest.approx(np.mean(margins) / norm**3, rel=1e-12)
    double = jax.tree.map(lambda x: 2 * x, params)
    assert float(theory.efficiency(model.predict(double, pairs), labels, only, double)) == pytest.approx(value, rel=1e-12)


def test_crossing_of_a_power_law_and_ends():
    share = np.array([0.1, 0.2, 0.4])
    assert theory.crossing(share, share**-1.5, 0.3**-1.5) == pytest.approx(0.3)
    assert theory.crossing(share, share**-1.5, 100.0) == pytest.approx(0.1)
    assert theory.crossing(share, share**-1.5, 0.1) == pytest.approx(0.4)


def test_half_interpolates_where_the_accuracy_passes_it():
    share = np.array([0.1, 0.2, 0.3])
    assert theory.half(share, np.array([0.0, 0.25, 0.75])) == pytest.approx(0.25)
    assert theory.half(share, np.array([0.5, 0.6, 0.7])) == pytest.approx(0.1)
    assert np.isnan(theory.half(share, np.array([0.0, 0.1, 0.2]))) and np.isnan(theory.half(share, np.array([0.6, 0.7, 0.8])))


# The branches of a run, what the setting refuses, and the judges of unlearning and of efficiency on made-up runs.


def test_branches_are_in_their_order(x64):
    branches = plan(Ungrok(fewer=(0.1, 0.3)))
    np.testing.assert_allclose(branches.share, [0.1, 0.3] * 3 + [0.1], rtol=1e-6)
    np.testing.assert_array_equal(branches.learned, [1, 1, 0, 0, 0, 0, 1])
    np.testing.assert_array_equal(branches.random, [0, 0, 0, 0, 1, 1, 0])
    np.testing.assert_allclose(branches.decay, [5e-4] * 6 + [0.0], rtol=1e-6)
    alone = plan(Ungrok(fewer=(0.1, 0.3), others=False))
    np.testing.assert_allclose(alone.share, [0.1, 0.3, 0.1], rtol=1e-6)
    np.testing.assert_array_equal([alone.learned, alone.random], [[1, 1, 1], [0, 0, 0]])
    np.testing.assert_allclose(alone.decay, [5e-4, 5e-4, 0.0], rtol=1e-6)


@pytest.mark.slow
def test_continued_networks_start_where_the_first_training_ended():
    ds = jd.sweep(trial, jd.grid(Ungrok, group="7", hidden=32, epochs=200, many=0.8, fewer=(0.3, 0.8)), seeds=2)
    first = ds.curve.isel(epoch=0)
    np.testing.assert_allclose(first.sel(left=0.8), ds.learned)
    np.testing.assert_allclose(ds.curve.isel(epoch=-1), ds.measured_continued)
    assert ds.sizes["epoch"] == SAMPLES + 1 and bool((ds.fitted > 0.9).all())
    assert bool((ds.memory.sel(left=0.3) > ds.memory.sel(left=0.8)).all())
    grid = jd.grid(Ungrok, group="7", hidden=32, epochs=200, many=0.8, fewer=(0.3, 0.8), others=False)
    alone = jd.sweep(trial, grid, seeds=2)
    np.testing.assert_allclose(alone.curve, ds.curve, atol=0.03)
    assert "memory" not in alone and "scratch" not in alone


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"fewer": (0.3, 0.2)}, "rising shares"),
        ({"fewer": (0.3, 0.9)}, "none above many"),
        ({"many": 1.0}, "leaves a pair"),
        ({"epochs": 30}, "multiple of 20"),
    ],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Ungrok(**fields)


@pytest.fixture
def lawful():
    """Eight networks that keep what they know from a share of .33 on, where the efficiencies cross."""
    share, rng = np.array([0.1, 0.2, 0.3, 0.36, 0.5]), np.random.default_rng(0)
    two = ("seed", "left")
    noise = 1 + 1e-3 * rng.random((8, 5))
    after = np.array([0.0, 0.0, 0.0, 1.0, 1.0]) / noise
    arrays = {
        "measured_continued": (two, after),
        "scratch": (two, after),
        "measured_kept": (("seed",), np.ones(8)),
        "memory": (two, share**-1.4 * noise),
        "general": (("seed",), np.full(8, 0.33**-1.4)),
        "learned": (("seed",), np.ones(8)),
        "fitted": (("seed",), np.ones(8)),
    }
    return xr.Dataset(arrays, {"left": share})


def passed(checks):
    return all(c.passed for c in checks)


def test_judges_hold_on_lawful_data(lawful):
    assert passed(ungrok_efficiency.judge_ungrok(lawful)) and passed(ungrok_efficiency.judge_efficiency(lawful))
    np.testing.assert_allclose([r.value for r in ungrok_efficiency.judge_crossing(lawful)[2:]], 0, atol=0.1)
    np.testing.assert_allclose(ungrok_efficiency.crossings(lawful), 0.33, rtol=2e-3)
    np.testing.assert_allclose(ungrok_efficiency.halves(lawful, "scratch"), 0.33, rtol=2e-3)


def test_judges_reject_others(lawful):
    assert not passed(ungrok_efficiency.judge_ungrok(ungrok_efficiency.reverse("measured_continued")(lawful)))
    assert not passed(ungrok_efficiency.judge_ungrok(jd.swap(measured_continued="learned")(lawful)))
    assert not passed(ungrok_efficiency.judge_ungrok(lawful.assign(measured_kept=0 * lawful.measured_kept)))
    assert ungrok_efficiency.inverse_crossing(lawful) > 0.36 and ungrok_efficiency.first_accuracy(lawful) == 1
    early = lawful.measured_continued.copy(data=np.tile([0.0, 1.0, 1.0, 1.0, 1.0], (8, 1)) - 1e-3 * lawful.memory.values / 50)
    lost, learned = ungrok_efficiency.judge_crossing(lawful.assign(measured_continued=early))[2:]
    assert lost.interval[1] < -0.1 < 0.1 > abs(learned.value)


def test_judge_of_accuracy_that_is_lost_in_part():
    """Networks that lose .7 of the table, a tenth of it slowly, and nothing; the last quarter is five of twenty records."""
    at = np.arange(21)
    three = np.stack([np.exp(-at / 4), 1 - 0.01 * at, np.ones(21)])
    curve = three[None] - 1e-3 * np.random.default_rng(0).random((8, 3, 21))
    arrays = {
        "measured_continued": (("seed", "left"), curve[:, :, -1]),
        "curve": (("seed", "left", "epoch"), curve),
        "learned": (("seed",), np.ones(8)),
        "fitted": (("seed",), np.ones(8)),
    }
    good = xr.Dataset(arrays, {"left": [0.2, 0.3, 0.4]})
    few, between, fall, many = (r.value for r in ungrok_efficiency.judge_semi(good)[2:])
    assert few < 0.1 and between == pytest.approx(0.8, abs=1e-3) and fall == pytest.approx(0.05, abs=2e-3) and many > 0.99
    assert ungrok_efficiency.on_fewest(good) == pytest.approx(few)
    assert ungrok_efficiency.judge_semi(ungrok_efficiency.reverse("measured_continued")(good))[2].value > 0.99


def test_judge_wants_gates_and_runs(lawful):
    assert not passed(ungrok_efficiency.judge_ungrok(lawful.assign(learned=0.5 * lawful.learned)))
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed"):
        ungrok_efficiency.judge_efficiency(lawful.isel(seed=slice(4)))
