"""The claims on the spectral loss come out as expected, with all their controls and rivals."""

import jaxdyn as jd
from jaxdyn.theories.hyper.claims import spectral


def test_verdicts():
    results = jd.verify_many(list(spectral.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in spectral.CLAIMS}
