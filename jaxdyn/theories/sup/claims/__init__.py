"""The claims on the construction, by topic."""

from jaxdyn.theories.sup.claims import layer, limits, search

__all__ = ["CLAIMS"]

TOPICS = (layer, search, limits)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
