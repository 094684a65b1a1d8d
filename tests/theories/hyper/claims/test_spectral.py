"""The claims on the spectral loss come out as expected, with all their controls and rivals."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.hyper.claims import spectral


@pytest.mark.slow  # a verification does the same
def test_verdicts():
    results = jd.verify_many(list(spectral.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in spectral.CLAIMS}
