"""The claims of CoGO, by topic."""

from jaxdyn.theories.cogo.claims import (
    abelian,
    carriers,
    constructions,
    energy,
    loss,
    memory,
    occam,
    orders,
    overparam,
    partial,
    parting,
    relax,
    semiring,
    trained,
)

__all__ = ["CLAIMS"]

TOPICS = (
    loss,
    semiring,
    partial,
    constructions,
    memory,
    abelian,
    energy,
    orders,
    relax,
    occam,
    trained,
    parting,
    carriers,
    overparam,
)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
