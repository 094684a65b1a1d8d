r"""The layer in which a thought looks for edges: linear attention with one full matrix of queries and keys, and its losses.

A thought holds vertices in superposition, :math:`h = \sum_{u \in N_c} \lambda_u e_u`. An edge (s, t) is a token with the key
:math:`e_s` and the value :math:`e_t`. The logits of the next vertex are read from the residual stream:

.. math:: \xi_v = \Bigl\langle e_v,\; h + \sum_{(s,t)} (h^\top W e_s)\, e_t \Bigr\rangle
          \;=\; \lambda_v + \sum_{(s,v)} (\lambda^\top W)_s

Coconut's loss is the cross-entropy of one demonstrated next vertex; Coconut-BFS's is :math:`-\ln P(N_{c+1})`. In the answering
layer, the thought and the token that carries both candidates write through full matrices :math:`M_A, M_R`.
Source: arXiv:2509.23365, section 4 (the simplified model). Letters: n vertices, d width, e_v orthonormal embeddings (columns of E),
A[s, t] number of edges from s to t.

Small search problems: a superposed thought over K of n vertices, a random digraph, and the vertex to predict next.

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
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray


class Answer(NamedTuple):
    """Matrices of the answering layer, each moved from zero."""

    thought: Float[Array, "n n"]  # M_A
    candidates: Float[Array, "n n"]  # M_R


def logits(
    w: Float[Array, "d d"], embed: Float[Array, "d n"], thought: Float[Array, " n"], edges: Float[Array, "n n"]
) -> Float[Array, " n"]:
    """Logits of the next vertex: the residual stream at the thought, after linear attention to all edges."""
    h = embed @ thought
    score = h @ w @ embed  # by source
    attended = jnp.sum(score[:, None] * edges, 0)  # not a product of matrices: batched ones of this size are slow on CPU
    return embed.T @ (h + embed @ attended)


def coconut_loss(xi: Float[Array, " n"], target: Float[Array, " n"]) -> Float[Array, ""]:
    """Cross-entropy of the demonstrated vertex, given one-hot."""
    return -jnp.sum(target * jax.nn.log_softmax(xi))


def bfs_loss(xi: Float[Array, " n"], reached: Bool[Array, " n"]) -> Float[Array, ""]:
    r""":math:`-\ln P(N_{c+1})`."""
    return jax.nn.logsumexp(xi) - jax.nn.logsumexp(jnp.where(reached, xi, -jnp.inf))


def answer_loss(
    m: Answer, thought: Float[Array, " n"], candidates: Float[Array, " n"], label: Float[Array, " n"]
) -> Float[Array, ""]:
    r"""Cross-entropy of the answer from the logits :math:`\lambda^\top M_A + (e_{c_1} + e_{c_2})^\top M_R`."""
    return coconut_loss(thought @ m.thought + candidates @ m.candidates, label)


def relabellings(n: int) -> Int[Array, "g n"]:
    r"""The relabellings :math:`v \mapsto xv + y \bmod n` of n vertices, n a prime; the first one changes nothing.

    They carry any ordered pair to any other, each equally often. So their average of a matrix is the average over all n!
    permutations, :math:`\mu I + \nu(\mathbb 1\mathbb 1^\top - I)`, from n(n - 1) of them.
    """
    x, y, v = jnp.arange(1, n), jnp.arange(n), jnp.arange(n)
    return ((x[:, None, None] * v + y[None, :, None]) % n).reshape(-1, n)


def relabel(array: Array, order: Array) -> Array:
    """A vector over vertices, or a matrix over pairs, with its vertices renamed."""
    return array[order] if array.ndim == 1 else array[order][:, order]


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
    shown = jnp.where(target == "top", n - 2, jnp.where(target == "middle", n - 3, n - 4))
    return Instance(thought, edges, (vertex == shown).astype(dtype), (thought > 0) | (thought @ edges > 0))


def renamed(instance: Instance, order: Array) -> Instance:
    """The same instance with its vertices renamed."""
    return Instance(*(relabel(part, order) for part in instance))
