"""The verdicts of this topic, with all controls and rivals, on one seed."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.sup import superposition


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_verdicts():
    assert [r.verdict for r in jd.verify_many(list(superposition.CLAIMS), seeds=1)] == [c.expected for c in superposition.CLAIMS]
