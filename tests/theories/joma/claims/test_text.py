"""The judges of attention while a language model learns, on made-up entropies."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.text import reading
from jaxdyn.theories.joma.claims import text
from tests.theories.joma.helpers import upheld

UNIFORM = reading.uniform_entropy(35)


@pytest.fixture
def ds():
    """A fall by one nat and a return by half of it in the top layer, a collapse in the bottom layer, with a little noise."""
    top = UNIFORM - np.array([0.0, 0.4, 1.0, 0.7, 0.5])
    bottom = np.array([UNIFORM, 0.5, 0.2, 0.1, 0.1])
    noise = 0.02 * np.random.default_rng(0).normal(size=(8, 5, 2))
    entropy = xr.DataArray(np.stack([bottom, top], -1) + noise, dims=("seed", "record", "layer"))
    start = xr.full_like(entropy.isel(record=0), UNIFORM)
    return xr.Dataset({"entropy": entropy, "measured_start": entropy.isel(record=0), "predicted_start": start})


@pytest.mark.parametrize("claim", text.CLAIMS, ids=lambda claim: claim.id)
def test_judges_uphold_a_dip_a_return_and_a_collapse_and_nothing_else(ds, claim):
    assert upheld(claim.judge, ds)
    others = [c.breach for c in claim.controls.values() if callable(c.breach)]
    for other in (*others, *claim.rivals.values()):
        assert not upheld(claim.judge, other(ds))


def test_attention_that_only_falls_has_no_return(ds):
    falling = text.falling(ds)
    assert upheld(text.judge_dip, falling) and not upheld(text.judge_return, falling)
    assert np.all(falling.entropy.diff("record") <= 0)


def test_one_layer_has_no_top_and_bottom(ds):
    with pytest.raises(jd.Inconclusive, match="at least 2 values of layer"):
        text.judge_collapse(ds.isel(layer=[0]))
