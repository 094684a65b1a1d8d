"""The claims of Li2, by topic."""

from jaxdyn.theories.li2.claims import (
    collect,
    depth,
    diversity,
    energy,
    maxima,
    memory,
    modulation,
    muon,
    nodes,
    phase,
    reconstruct,
    regimes,
    repulsion,
    retention,
    ridge,
    similar,
    stage3,
    stages,
    suppression,
    variants,
    width,
    zero_init,
)

__all__ = ["CLAIMS"]

TOPICS = (
    ridge,
    regimes,
    width,
    repulsion,
    similar,
    depth,
    muon,
    collect,
    energy,
    maxima,
    modulation,
    memory,
    reconstruct,
    retention,
    phase,
    stages,
    stage3,
    nodes,
    zero_init,
    variants,
    diversity,
    suppression,
)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
