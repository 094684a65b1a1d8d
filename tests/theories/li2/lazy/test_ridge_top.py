"""The judge of the ridge solution as top layer, on planted times."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.li2.lazy import ridge_top
from tests.theories.li2.helpers import passes, refuses_opponents

(CLAIM,) = ridge_top.CLAIMS


def timed(small=(150, 250), large=(40, 20), last=400):
    """Epochs with a trained top layer and with the ridge solution, on both groups."""
    noise = 1 + 0.05 * np.random.default_rng(0).normal(size=(2, 2, 16))
    time = np.array([small, large], float)[..., None] * noise
    coords = {"group": ["23", "41"], "ridge": [False, True], "seed": range(16), "epoch": [0, last]}
    ds = xr.Dataset({"measured_time": (("group", "ridge", "seed"), time)}, coords)
    return ds.assign(accuracy=xr.ones_like(ds.measured_time).expand_dims(epoch=[0, last]))


def test_the_judge_upholds_what_is_planted_and_refuses_others():
    assert passes(CLAIM, timed())
    for other in (timed(small=(150, 120)), timed(large=(40, 30)), timed(small=(150, 150))):
        assert not passes(CLAIM, other)
    refuses_opponents(CLAIM, timed())


def test_networks_that_do_not_get_there_count_with_all_epochs():
    never = timed()
    never = never.assign(measured_time=never.measured_time.where((never.group != "23") | ~never.ridge, 800.0))
    least = ridge_top.gain(never).sel(group="23")
    np.testing.assert_allclose(np.exp(-least) * timed().measured_time.sel(group="23", ridge=False), 400)


def test_networks_with_a_trained_top_layer_must_generalise():
    ds = timed()
    gate = ridge_top.judge(ds.assign(accuracy=ds.accuracy.where(ds.ridge, 0.5)))[0]
    assert gate.gate and not gate.passed
    with pytest.raises(jd.Inconclusive, match="group"):
        ridge_top.judge(ds.sel(group=["41"]))
