"""Numbers with their intervals."""

import math

import numpy as np
import pytest
import scipy
import xarray as xr

from jaxdyn.models.instruments import INSTRUMENTS
from jaxdyn.models.instruments.instrument import number


def test_the_interval_is_over_pieces():
    values = np.random.default_rng(0).normal(size=(5, 3))
    n = number("x", xr.DataArray(values, dims=("piece", "layer")), [1.0, 3.0], "nobody")
    means = values.mean(1)
    half = scipy.stats.t.ppf(0.975, 4) * means.std(ddof=1) / 5**0.5
    assert (n.value, n.low, n.high) == pytest.approx((means.mean(), means.mean() - half, means.mean() + half))
    assert n.expected == 2 and n.says == "nobody"


def test_without_pieces_there_is_none():
    for values in (2.5, np.array([2.0, 3.0]), xr.DataArray([2.0, 3.0], dims="layer")):
        n = number("x", values)
        assert n.value == 2.5 and math.isnan(n.low) and n.expected is None
    assert math.isnan(number("x", xr.DataArray([1.0], dims="piece")).low)  # one piece says nothing of its error


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_every_instrument_says_what_it_shows(name):
    one = INSTRUMENTS[name]
    assert one.name == name and one.title and len(one.theory) > 80 and len(one.caption) > 80 and "arXiv:" in one.source
    assert one.theory.count("$") % 2 == 0 and "arXiv:" in one.theory
