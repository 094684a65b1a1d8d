"""The claims on MobileLLM, by topic."""

from jaxdyn.theories.mobile.claims import counts

__all__ = ["CLAIMS"]

TOPICS = (counts,)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
