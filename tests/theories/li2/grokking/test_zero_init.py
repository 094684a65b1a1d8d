"""The judge of the zero start, on planted times."""

import numpy as np
import xarray as xr

from jaxdyn.theories.li2.grokking import zero_init
from tests.theories.li2.helpers import passes, refuses_opponents

(CLAIM,) = zero_init.CLAIMS


def timed(few=(800, 650), many=(50, 38)):
    """Epochs from the normal start and from zero, on few and on many pairs."""
    noise = np.random.default_rng(0).normal(size=(2, 2, 16))
    time = np.array([[few[1], few[0]], [many[1], many[0]]])[..., None] + np.array([10, 2.0])[:, None, None] * noise
    coords = {"share": [0.4, 0.9], "top": [0.0, 1.0], "seed": np.arange(16)}
    ds = xr.Dataset({"measured_time": (("share", "top", "seed"), time)}, coords)
    return ds.assign(accuracy=xr.ones_like(ds.measured_time).expand_dims(epoch=[0, 1]))


def test_the_judge_upholds_what_is_planted_and_refuses_others():
    assert passes(CLAIM, timed())
    assert not passes(CLAIM, timed(many=(200, 100)))
    refuses_opponents(CLAIM, timed())


def test_networks_that_do_not_generalise_fail_the_gate():
    ds = timed()
    gate = zero_init.judge(ds.assign(accuracy=0 * ds.accuracy))[0]
    assert gate.gate and not gate.passed
