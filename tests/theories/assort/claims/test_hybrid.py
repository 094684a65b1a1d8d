"""The claims on hybrid come out as expected on a few runs, with all their controls and rivals."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.assort.claims import hybrid


@pytest.mark.slow  # a verification does the same
def test_verdicts():
    results = jd.verify_many(list(hybrid.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in hybrid.CLAIMS}
