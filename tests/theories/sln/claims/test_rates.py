"""The verdicts of this topic, with all controls and rivals."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.sln.claims import rates


@pytest.mark.slow  # a verification judges the same runs
def test_verdicts():
    assert [r.verdict for r in jd.verify_many(list(rates.CLAIMS))] == [c.expected for c in rates.CLAIMS]
