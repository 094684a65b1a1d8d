"""The claims of Li2, by topic."""

from jaxdyn.theories.grokking.claims import (
    collect,
    depth,
    energy,
    maxima,
    memory,
    modulation,
    muon,
    regimes,
    repulsion,
    retention,
    ridge,
    similar,
    width,
)

__all__ = ["CLAIMS"]

TOPICS = (ridge, regimes, width, repulsion, similar, depth, muon, collect, energy, maxima, modulation, memory, retention)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
