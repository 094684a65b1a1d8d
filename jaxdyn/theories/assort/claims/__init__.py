"""The claims on codes among text, by topic."""

from jaxdyn.theories.assort.claims import capacity, hybrid, quantiser

__all__ = ["CLAIMS"]

TOPICS = (quantiser, capacity, hybrid)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
