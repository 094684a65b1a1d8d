"""The published number stands in the claims' source."""

from jaxdyn.theories.power import CLAIMS
from jaxdyn.theories.power.published import PAPER, PER_PERCENT


def test_every_claim_names_the_published_growth():
    assert 0 < PER_PERCENT[0] < PER_PERCENT[1] < 1
    assert all(PAPER in claim.source for claim in CLAIMS)
