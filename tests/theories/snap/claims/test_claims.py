"""The theory's claims as a whole."""

from jaxdyn.theories.snap import CLAIMS


def test_claims_are_complete():
    assert len({c.id for c in CLAIMS}) == len(CLAIMS) > 40
    for claim in CLAIMS:
        assert claim.id.startswith("snap.") and claim.plot is not None and claim.caption
