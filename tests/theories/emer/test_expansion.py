"""The claims on expansion come out as expected on a few runs, with all their controls and rivals."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.emer import expansion


@pytest.mark.slow
def test_verdicts():
    results = jd.verify_many(list(expansion.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in expansion.CLAIMS}
