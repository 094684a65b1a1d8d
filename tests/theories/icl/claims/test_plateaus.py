"""The claims come out as expected, with all their controls and rivals."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.icl.claims import plateaus


@pytest.mark.slow  # a verification judges the same runs
def test_verdicts():
    results = jd.verify_many(list(plateaus.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in plateaus.CLAIMS}
