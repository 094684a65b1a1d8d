"""The claims on the construction and on trained networks, by topic."""

from jaxdyn.theories.sup.claims import layer, limits, search, trained

__all__ = ["CLAIMS"]

TOPICS = (layer, search, limits, trained)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
