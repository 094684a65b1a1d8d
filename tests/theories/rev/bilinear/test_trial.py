"""Flows that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.rev.bilinear import trial


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"pairs": 0}, "pairs"),
        ({"per_pair": 1}, "per_pair"),
        ({"d": 400.0}, "max_d"),
        ({"d": 1.5}, "d=1.5"),
        ({"sigma": -1.0}, "sigma"),
    ],
)
def test_impossible_flows(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        trial.Bilinear(**fields)
