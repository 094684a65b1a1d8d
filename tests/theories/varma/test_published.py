"""The published finding stands in the claims' source."""

from jaxdyn.theories.varma import CLAIMS
from jaxdyn.theories.varma.published import PAPER


def test_every_claim_names_what_was_published():
    assert all(PAPER in claim.source for claim in CLAIMS)
