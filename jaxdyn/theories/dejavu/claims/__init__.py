"""The claims on contextual sparsity, by topic."""

from jaxdyn.theories.dejavu.claims import cosine, parts, shift, zeros

__all__ = ["CLAIMS"]

TOPICS = (cosine, zeros, shift, parts)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
