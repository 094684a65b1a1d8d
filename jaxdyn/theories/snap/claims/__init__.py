"""The claims of Scan & Snap, by topic."""

from jaxdyn.theories.snap.claims import (
    b_flow,
    b_law,
    clock,
    fig5,
    fig6,
    frozen,
    gradient,
    invariants,
    length,
    memory,
    optimizers,
    original,
    overlap,
    thm2,
    thm3,
)

__all__ = ["CLAIMS"]

TOPICS = (gradient, length, invariants, clock, original, thm2, thm3, b_law, b_flow, frozen, memory, fig5, optimizers, fig6, overlap)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
