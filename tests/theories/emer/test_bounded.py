"""The claims on bounded come out as expected on a few runs, with all their controls and rivals."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.emer import bounded


@pytest.mark.slow  # a verification judges the same runs
def test_verdicts():
    results = jd.verify_many(list(bounded.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in bounded.CLAIMS}
