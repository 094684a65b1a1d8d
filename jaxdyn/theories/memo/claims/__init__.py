"""The claims on memorisation, by topic."""

from jaxdyn.theories.memo.claims import interpolant, labels, pixels

__all__ = ["CLAIMS"]

TOPICS = (labels, pixels, interpolant)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
