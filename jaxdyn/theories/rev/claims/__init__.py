"""The claims of the reversal theory, by topic."""

from jaxdyn.theories.rev.claims import asym, bilinear, clock, context, thm3, thm4, transformer

__all__ = ["CLAIMS"]

TOPICS = (clock, thm3, thm4, asym, context, bilinear, transformer)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
