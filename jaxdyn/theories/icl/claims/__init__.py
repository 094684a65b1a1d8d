"""The claims on in-context regression, by topic."""

from jaxdyn.theories.icl.claims import limit, plateaus, sgd

__all__ = ["CLAIMS"]

TOPICS = (limit, plateaus, sgd)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
