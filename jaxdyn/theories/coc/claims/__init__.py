"""The claims on training with continuous thoughts, by topic."""

from jaxdyn.theories.coc.claims import methods, thoughts

__all__ = ["CLAIMS"]

TOPICS = (methods, thoughts)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
