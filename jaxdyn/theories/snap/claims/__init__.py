"""The claims of Scan & Snap, by topic."""

from jaxdyn.theories.snap.claims import b_law, clock, fig6, frozen, gradient, invariants, length, memory, optimizers, original, overlap
from jaxdyn.theories.snap.claims import fig5 as syn, thm2 as theorem2, thm3 as theorem3

__all__ = ["CLAIMS"]

TOPICS = (gradient, length, invariants, clock, original, theorem2, theorem3, b_law, frozen, memory, syn, optimizers, fig6, overlap)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
