r"""Small search problems: a superposed thought over K of n vertices, a random digraph, and the vertex to predict next.

Vertices 0 to K - 1 are the thought's, each with weight :math:`1/\sqrt K`. Edges are random, except that four vertices outside
have no, one, K - gap and K edges from the thought, so that every regime of the theorem occurs:

==========  =====================  ===========================================================
target      edges from the thought  regime
==========  =====================  ===========================================================
``middle``  K - gap                :math:`F(0) < d_p < d_{max}` in graphs that are sparse enough
``top``     K                      :math:`d_p = d_{max}`
``low``     one                    :math:`d_p < F(0)` in dense graphs
==========  =====================  ===========================================================

Letters: n vertices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from jaxdyn.theories.emer.model import relabel

TARGETS = ("middle", "top", "low")


class Instance(NamedTuple):
    """A thought (its weights), the graph, the vertex to predict (one-hot), and the vertices within one more step."""

    thought: Float[Array, " n"]
    edges: Float[Array, "n n"]
    target: Float[Array, " n"]
    reached: Bool[Array, " n"]


def random_digraph(key: PRNGKeyArray, n: int, density: Any, dtype: str = "float64") -> Float[Array, "n n"]:
    """Each ordered pair of different vertices is an edge with this probability."""
    return ((jax.random.uniform(key, (n, n), dtype) < density) & ~jnp.eye(n, dtype=bool)).astype(dtype)


def sample(key: PRNGKeyArray, n: int, inside: Any, gap: Any, density: Any, target: Any, dtype: str = "float64") -> Instance:
    """An instance of n vertices; ``target`` is a switch between ``TARGETS``."""
    k_edges, k_rank = jax.random.split(key)
    edges, vertex = random_digraph(k_edges, n, density, dtype), jnp.arange(n)
    thought = jnp.where(vertex < inside, jnp.sqrt(1 / inside), 0.0).astype(dtype)
    rank = jnp.argsort(jnp.argsort(jnp.where(vertex < inside, jax.random.uniform(k_rank, (n,), dtype), 2.0)))
    for place, degree in ((n - 1, 0), (n - 2, inside), (n - 3, inside - gap), (n - 4, 1)):
        column = jnp.where(vertex < inside, rank < degree, edges[:, place] > 0)
        edges = edges.at[:, place].set(column.astype(dtype))
    place = jnp.where(target == "top", n - 2, jnp.where(target == "middle", n - 3, n - 4))
    return Instance(thought, edges, (vertex == place).astype(dtype), (thought > 0) | (thought @ edges > 0))


def renamed(instance: Instance, order: Array) -> Instance:
    """The same instance with its vertices renamed."""
    return Instance(*(relabel(part, order) for part in instance))
