"""The verdicts of this topic, with all controls and rivals."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.sln.claims import exact


@pytest.mark.slow  # a verification judges the same runs
def test_verdicts():
    assert [r.verdict for r in jd.verify_many(list(exact.CLAIMS))] == [c.expected for c in exact.CLAIMS]
