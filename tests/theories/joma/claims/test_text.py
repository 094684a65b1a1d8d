"""The judges of attention while a language model learns, on made-up entropies."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.text import reading
from jaxdyn.theories.joma.claims import text
from tests.theories.joma.helpers import upheld

UNIFORM = reading.uniform_entropy(35)


@pytest.fixture
def ds():
    """A fall by one nat and a return by half of it, with a little noise."""
    path = UNIFORM - np.array([0.0, 0.4, 1.0, 0.7, 0.5])
    noise = 0.02 * np.random.default_rng(0).normal(size=(8, 5, 1))
    entropy = xr.DataArray(path[:, None] + noise, dims=("seed", "record", "layer"))
    start = xr.full_like(entropy.isel(record=0), UNIFORM)
    return xr.Dataset({"entropy": entropy, "measured_start": entropy.isel(record=0), "predicted_start": start})


def test_a_fall_and_a_return_pass(ds):
    assert upheld(text.judge_dip, ds) and upheld(text.judge_return, ds)


def test_attention_that_stays_as_it_is_has_no_dip(ds):
    assert not upheld(text.judge_dip, text.untrained(ds))


def test_attention_that_only_falls_has_no_return(ds):
    falling = text.falling(ds)
    assert upheld(text.judge_dip, falling) and not upheld(text.judge_return, falling)
    assert np.all(falling.entropy.diff("record") <= 0)
