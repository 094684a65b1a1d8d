"""Judges of the sinks that networks learn, on made-up curves."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.theories.sink import bb_emerge
from jaxdyn.theories.sink.model import FORMS

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


def readings(found):
    return {r.name: r.value for r in found if not hasattr(r, "gate")}


def gates(found):
    return [c.passed for c in found if hasattr(c, "gate")]


def test_a_sink_that_emerges():
    ds = made().sel(attention="softmax")
    found = readings(bb_emerge.judge_emerge(ds))
    assert list(found.values()) == pytest.approx([0.4 / 0.085, 0.004 / 0.085, 0.4], rel=0.1)
    still = {name: number(ds) for name, number in bb_emerge.STILL.items()}
    assert still.keys() == found.keys() and list(still.values()) == pytest.approx([0.09 / 0.085, 0.09 / 0.085, 0.9])


def test_a_sink_of_its_own_however_many_forms_are_run():
    both, one = made().sel(attention=["zero_sink", "sink_bias"]), made().sel(attention=["relu"])
    (own,) = readings(bb_emerge.judge_own(both)).values()
    assert own == pytest.approx(0.375 / 0.085, rel=0.1)
    assert readings(bb_emerge.judge_own(one)) == readings(bb_emerge.judge_own(one.isel(attention=0)))


def test_every_form():
    ds = made()
    found = readings(bb_emerge.judge_forms(ds))
    assert list(found.values()) == pytest.approx([ENDS[form] / 0.085 for form in FORMS], rel=0.15)
    assert bb_emerge.STILL_FORMS.keys() == bb_emerge.UNIFORM_FORMS.keys() == found.keys()
    assert bb_emerge.STILL_FORMS["share of token 0, relu"](ds) == pytest.approx(0.09 / 0.085)
    untrained = made().assign(copy_loss=ds.copy_loss + 1)
    assert gates(bb_emerge.judge_forms(untrained)) == [False, True]
