"""The claims on free features come out as expected, with all their controls and rivals."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.collapse.claims import free


@pytest.mark.slow  # a verification judges the same runs
def test_verdicts():
    results = jd.verify_many(list(free.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in free.CLAIMS}
