"""Flows that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.rev.bilinear import trial


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"d": 400.0}, "max_d"),
        ({"d": 1.5}, "d=1.5"),
    ],
)
def test_impossible_flows(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        trial.Bilinear(**fields)
