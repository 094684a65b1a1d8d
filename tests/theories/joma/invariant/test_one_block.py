"""Settings of one block."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.invariant.one_block import OneBlock


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"queries": 4.0}, "queries=4.0, max_queries=3 are not allowed: queries is at most max_queries"),
        ({"nodes": 3.0}, "nodes=3.0, hidden=2 are not allowed: nodes is at most hidden"),
        ({"dim": 6}, "dim=6 is not allowed: 7 orthonormal columns need dim >= 7"),
    ],
)
def test_settings_refuse_what_the_arrays_cannot_hold(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        OneBlock(**fields)
