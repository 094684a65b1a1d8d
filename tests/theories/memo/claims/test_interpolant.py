"""The claim on the constructed network comes out as expected, with all its controls and rivals."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.memo.claims import interpolant


@pytest.mark.slow  # a verification does the same
def test_verdicts():
    results = jd.verify_many(list(interpolant.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in interpolant.CLAIMS}
