"""The claims on neural collapse, by topic."""

from jaxdyn.theories.collapse.claims import free, network

__all__ = ["CLAIMS"]

TOPICS = (free, network)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
