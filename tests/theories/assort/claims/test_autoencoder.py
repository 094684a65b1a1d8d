"""The claim on the autoencoder comes out as expected, with its controls and rivals."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.assort.claims import autoencoder


@pytest.mark.slow  # a verification judges the same runs
def test_verdicts():
    results = jd.verify_many(list(autoencoder.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in autoencoder.CLAIMS}
