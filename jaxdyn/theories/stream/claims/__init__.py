"""The claims on streaming caches, by topic."""

from jaxdyn.theories.stream.claims import caches, cost, lost

__all__ = ["CLAIMS"]

TOPICS = (caches, lost, cost)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
