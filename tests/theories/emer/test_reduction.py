"""The claims on reduction come out as expected on a few runs, with all their controls and rivals."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.emer import reduction


@pytest.mark.slow  # a verification judges the same runs
def test_verdicts():
    results = jd.verify_many(list(reduction.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in reduction.CLAIMS}
