"""Judges of destroyed images, on made-up runs."""

import numpy as np
import xarray as xr

from jaxdyn.theories.memo import input_corruptions
from jaxdyn.theories.memo.model import CONDITIONS
from tests.theories.galore.helpers import passed


def made(steps):
    """Eight runs of every condition."""
    noise = np.random.default_rng(0).normal(size=(5, 8))
    ds = {"measured_first": np.array(steps)[:, None] + noise, "measured_right": np.ones((5, 8)), "measured_start": 0.1 + 0 * noise}
    ds = {name: (("condition", "seed"), v) for name, v in ds.items()} | {"status": (("condition", "seed"), noise)}
    ds["steps"] = ("condition", "seed", "step"), np.broadcast_to([0.0, 100.0, 200.0], (5, 8, 3))
    return xr.Dataset(ds, coords={"condition": list(CONDITIONS)})


def test_conditions():
    ds = made([50, 125, 50, 45, 40])
    assert passed(input_corruptions.judge(ds)) == [True, True] and passed(input_corruptions.judge_times(ds)) == [True] * 3
    assert passed(input_corruptions.judge(input_corruptions.STILL(ds))) == [False, False]
    assert passed(input_corruptions.judge(ds.roll(condition=1, roll_coords=False)))[1] is False
    assert passed(input_corruptions.judge_times(input_corruptions.UNLEARNABLE(ds))) == [False] * 3
