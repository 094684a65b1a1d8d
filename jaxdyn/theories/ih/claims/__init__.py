"""The claims on statistical induction heads, by topic."""

from jaxdyn.theories.ih.claims import baselines, phases

__all__ = ["CLAIMS"]

TOPICS = (baselines, phases)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
