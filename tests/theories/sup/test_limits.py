"""The verdicts of this topic, with all controls and rivals, on one seed."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.sup import limits


@pytest.mark.slow  # a verification judges the same runs
def test_verdicts():
    assert [r.verdict for r in jd.verify_many(list(limits.CLAIMS), seeds=1)] == [c.expected for c in limits.CLAIMS]
