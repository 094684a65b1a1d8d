"""The claims on MobileLLM, by topic."""

from jaxdyn.theories.mobile.claims import counts, depth, variants

__all__ = ["CLAIMS"]

TOPICS = (counts, depth, variants)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
