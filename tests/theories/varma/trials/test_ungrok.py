"""The branches of a run, and what the setting refuses."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.varma.trials.ungrok import SAMPLES, Ungrok, plan, trial


def test_branches_are_in_their_order(x64):
    branches = plan(Ungrok(fewer=(0.1, 0.3)))
    np.testing.assert_allclose(branches.share, [0.1, 0.3] * 3 + [0.1], rtol=1e-6)
    np.testing.assert_array_equal(branches.learned, [1, 1, 0, 0, 0, 0, 1])
    np.testing.assert_array_equal(branches.random, [0, 0, 0, 0, 1, 1, 0])
    np.testing.assert_allclose(branches.decay, [5e-4] * 6 + [0.0], rtol=1e-6)
    alone = plan(Ungrok(fewer=(0.1, 0.3), beside=False))
    np.testing.assert_allclose(alone.share, [0.1, 0.3, 0.1], rtol=1e-6)
    np.testing.assert_array_equal([alone.learned, alone.random], [[1, 1, 1], [0, 0, 0]])
    np.testing.assert_allclose(alone.decay, [5e-4, 5e-4, 0.0], rtol=1e-6)


def test_continued_networks_start_where_the_first_training_ended():
    ds = jd.sweep(trial, jd.grid(Ungrok, group="7", hidden=32, epochs=200, many=0.8, fewer=(0.3, 0.8)), seeds=2)
    first = ds.curve.isel(epoch=0)
    np.testing.assert_allclose(first.sel(left=0.8), ds.learned)
    np.testing.assert_allclose(ds.curve.isel(epoch=-1), ds.measured_continued)
    assert ds.sizes["epoch"] == SAMPLES + 1 and bool((ds.fitted > 0.9).all())
    assert bool((ds.memory.sel(left=0.3) > ds.memory.sel(left=0.8)).all())
    grid = jd.grid(Ungrok, group="7", hidden=32, epochs=200, many=0.8, fewer=(0.3, 0.8), beside=False)
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
        ({"hidden": 0}, "at least one"),
        ({"lr": 0.0}, "positive"),
    ],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Ungrok(**fields)
