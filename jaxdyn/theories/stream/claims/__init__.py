"""The claims on streaming caches, by topic."""

from jaxdyn.theories.stream.claims import backcopy, caches, cost, lost, text

__all__ = ["CLAIMS"]

TOPICS = (caches, lost, cost, backcopy, text)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
