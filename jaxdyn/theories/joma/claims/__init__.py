"""The claims of JoMA, by topic."""

from jaxdyn.theories.joma.claims import (
    bounce,
    fig2,
    fig3,
    hblt,
    hier_order,
    invariants,
    linear,
    linear_attention,
    low_rank,
    lowrank_link,
    softmax,
    stationarity,
    table1,
    text,
    thm3,
    thm3_path,
    thm4,
    thm4_trained,
)

__all__ = ["CLAIMS"]

TOPICS = (
    invariants,
    softmax,
    fig2,
    linear,
    linear_attention,
    low_rank,
    lowrank_link,
    fig3,
    stationarity,
    thm3,
    thm3_path,
    thm4,
    thm4_trained,
    bounce,
    hblt,
    hier_order,
    table1,
    text,
)
CLAIMS = tuple(claim for topic in TOPICS for claim in topic.CLAIMS)
