"""The claims on how superposition emerges, by topic."""

from jaxdyn.theories.emer.claims import answer, bounded, expansion, growth, reduction

__all__ = ["CLAIMS"]

TOPICS = (reduction, bounded, growth, expansion, answer)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
