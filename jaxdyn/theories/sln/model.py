r"""How often navigation takes a shortest path on one graph, for all embeddings of the table at once.

Nothing is trained here. One spectrum serves all embeddings, which are numbers of one program.
Letters: a embeddings, N vertices, m edges, i source, t target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxdyn.data import graphs
from jaxdyn.theories.sln import dynamics
from jaxdyn.theories.sln.dynamics import Embedding

GROUND, CHANCE = "Steinerberger", "random neighbour"
METHODS = (*dynamics.EMBEDDINGS, GROUND, CHANCE)


class Routed(NamedTuple):
    """Probability of a shortest path, and whether every choice among ties leads along one, by method, source and target."""

    success: Float[Array, "a i t"]
    sure: Float[Array, "a i t"]


def stack(rows: Sequence[Embedding], dtype: str = "float64") -> Embedding:
    """Rows, e.g. of the table, as arrays."""
    return Embedding(*(jnp.asarray(column, dtype) for column in zip(*rows, strict=True)))


def routed(graph: Bool[Array, "N N"], rows: Embedding, most: int, dtype: str = "float64") -> Routed:
    """By each row, then by the baseline, then by a random neighbour."""
    size, edges, away = len(graph), graphs.edges_of(graph, most), graphs.distances(graph)
    s = dynamics.spectrum(edges, size, dtype)

    def one(row: Embedding) -> tuple[Array, Array]:
        cost = dynamics.costs(dynamics.squared_distances(s, row), edges, size)
        return dynamics.success(dynamics.tied(cost), away, dtype)

    anywhere = jnp.broadcast_to(graph[:, :, None], (size, size, size))
    more = [dynamics.success(c, away, dtype) for c in (dynamics.tied(dynamics.ground_states(graph, dtype)), anywhere)]
    each, others = jax.vmap(one)(rows), jax.tree.map(lambda *x: jnp.stack(x), *more)
    return Routed(*(jnp.concatenate(pair) for pair in zip(each, others, strict=True)))


def targets(graph: Bool[Array, "N N"]) -> tuple[Bool[Array, "i t"], Bool[Array, "i t"]]:
    """Ordered pairs of different vertices of the graph, and those of them that are not adjacent."""
    here = jnp.any(graph, 1)
    pairs = here[:, None] & here & ~jnp.eye(len(graph), dtype=bool)
    return pairs, pairs & ~graph


def share(values: Float[Array, "*a i t"], pairs: Bool[Array, "i t"]) -> Float[Array, "*a"]:
    """Mean over pairs; 1 if there is none."""
    count = jnp.sum(pairs)
    return jnp.where(count > 0, jnp.sum(jnp.where(pairs, values, 0), (-2, -1)) / jnp.maximum(count, 1), 1.0)
