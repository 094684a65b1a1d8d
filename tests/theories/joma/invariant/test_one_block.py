"""Settings of one block."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.invariant.one_block import OneBlock


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"queries": 4.0}, "queries=4.0 is not allowed: queries is from 1 to 3"),
        ({"nodes": 0.5}, "nodes=0.5 is not allowed"),
        ({"depth": 3.0}, "depth=3.0 is not allowed: depth is from 0 to 2"),
        ({"dim": 6}, "dim=6 is not allowed: 7 orthonormal columns need dim >= 7"),
    ],
)
def test_settings_refuse_what_the_arrays_cannot_hold(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        OneBlock(**fields)
