"""The claims come out as expected, with all their controls and rivals."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.margin.claims import select


@pytest.mark.slow
def test_verdicts():
    results = jd.verify_many(list(select.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in select.CLAIMS}
