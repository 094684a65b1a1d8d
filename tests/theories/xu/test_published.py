"""The published numbers are consistent with one another and stand in the claims' source."""

from jaxdyn.theories.xu import CLAIMS
from jaxdyn.theories.xu.published import FIRED, FIRES_AT, LATE, MIDDLE, PAPER


def test_published_numbers():
    assert FIRED == (15, 0) and f"{FIRES_AT}" in PAPER
    assert MIDDLE[0] <= FIRES_AT <= MIDDLE[1]
    assert 228 < LATE[0] / LATE[1] < 230
    assert all(PAPER in claim.source for claim in CLAIMS)
    assert all(FIRES_AT < claim.paper.base.epochs for claim in CLAIMS)
