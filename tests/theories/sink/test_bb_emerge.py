"""Judges of the sinks that networks learn, on made-up curves."""

import numpy as np
import xarray as xr

from jaxdyn.theories.sink import bb_emerge
from jaxdyn.theories.sink.model import FORMS
from tests.theories.galore.helpers import passed

ENDS = {"softmax": 0.4, "zero_sink": 0.4, "sink_bias": 0.35, "relu": 0.02, "sigmoid": 0.3}  # share of token 0 at the end


def made(**change):
    """Sixteen runs of every form, at the start and at the end."""
    rng = np.random.default_rng(0)

    def curve(start, end):
        ends = np.array([end.get(form, 0) if isinstance(end, dict) else end for form in FORMS])
        values = np.stack([np.full((5, 16), start), ends[:, None] * (1 + 0.1 * rng.normal(size=(5, 16)))], -1)
        return ("attention", "seed", "step"), values

    curves = {"idle": (0.09, ENDS), "share": (0.09, ENDS), "copying": (0.09, 0.004), "drain": (0.9, 0.4), "margin": (0.0, 3.0)}
    ds = {f"measured_{name}": curve(*ends) for name, ends in (curves | change).items()}
    ds |= {"copy_loss": curve(3.0, 0.05), "excess": curve(1.7, 0.03), "uniform": (("attention", "seed"), np.full((5, 16), 0.085))}
    return xr.Dataset(ds, coords={"attention": list(FORMS)})


def decided(checks):
    return passed([c for c in checks if not c.gate])


def test_a_sink_that_emerges():
    ds = made().sel(attention="softmax")
    assert decided(bb_emerge.judge_emerge(ds)) == [True] * 3
    assert decided(bb_emerge.judge_emerge(bb_emerge.STILL(ds))) == [False] * 3
    assert decided(bb_emerge.judge_emerge(made().sel(attention="relu")))[0] is False
    assert decided(bb_emerge.judge_emerge(made(drain=(0.9, 0.9)).sel(attention="softmax")))[2] is False


def test_a_sink_of_its_own():
    ds = made().sel(attention=["zero_sink", "sink_bias"])
    assert decided(bb_emerge.judge_own(ds)) == [True]
    assert decided(bb_emerge.judge_own(bb_emerge.UNIFORM(ds))) == decided(bb_emerge.judge_own(bb_emerge.STILL(ds))) == [False]


def test_every_form():
    ds = made()
    assert decided(bb_emerge.judge_forms(ds)) == [True] * 5
    assert decided(bb_emerge.judge_forms(bb_emerge.UNIFORM(ds))) == [False] * 5
    untrained = made().assign(copy_loss=ds.copy_loss + 1)
    assert [c.passed for c in bb_emerge.judge_forms(untrained) if c.gate] == [False, True]
