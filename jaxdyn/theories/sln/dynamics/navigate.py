r"""Navigation by distances between edges, and the exact probability that it takes a shortest path.

At vertex i with target t the next vertex is the j of

.. math:: \arg\min_{j \in N(i)}\; \min_{k \in N(t)} \lVert x_{ij} - x_{kt} \rVert^2

Vertices within ``TIE`` of the minimum tie, and one of them is taken uniformly. With D the distance in the graph,

.. math:: P(t, t) = 1, \qquad P(i, t) = \overline{\mathbb 1\{D(j, t) = D(i, t) - 1\}\, P(j, t)} \text{ over the tied } j

is the probability of a shortest path, without sampling; with the minimum instead of the mean, whether every choice is good.
Source: arXiv:2502.08794, section 4; rule for ties: ours. The baseline is arXiv:2004.01163: the ground state of the Laplacian
without the target's row and column; the next vertex has the smallest entry.
Letters: m edges, N vertices i, j, t.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxdyn import linalg
from jaxdyn.data.graphs import Edges
from jaxdyn.theories.sln.dynamics.line import incidence

TIE = 1e-9  # of squared distances
SQUARES = 24  # of the inverse Laplacian


def costs(between: Float[Array, "m m"], edges: Edges, size: int) -> Float[Array, "i j t"]:
    """What is minimised over j: squared distance of the edge ij from the nearest edge at t; infinite where ij is no edge."""
    at = incidence(edges, size)
    near = jnp.min(jnp.where(at, between[:, :, None], jnp.inf), 1)  # [m, t]
    u, v = jnp.where(edges.real[:, None], edges.ends, size).T
    empty = jnp.full((size, size, size), jnp.inf, between.dtype)
    return empty.at[u, v].set(near, mode="drop").at[v, u].set(near, mode="drop")


def ground_states(graph: Bool[Array, "N N"], dtype: str = "float64") -> Float[Array, "i j t"]:
    r"""Costs of the baseline: :math:`\phi_t(j)`, the ground state on the component of the graph without t that holds j; 0 at t.

    Ground states of all components at once are the limit of repeated squares of the inverse Laplacian, which is non-negative and
    block-diagonal; each block is divided by its largest entry.
    """
    size = len(graph)
    a = graph.astype(dtype)
    laplacian = jnp.diag(jnp.where(jnp.any(graph, 1), jnp.sum(a, 1), 1.0)) - a

    def at(t: Int[Array, ""]) -> Float[Array, "i j"]:
        # the inverse of the Laplacian without t, component by component
        here = jnp.arange(size) == t
        out = here | here[:, None]
        joined = reach(graph & ~out)
        start = jnp.where(out, 0, linalg.inv(jnp.where(out, jnp.eye(size, dtype=a.dtype), laplacian)))

        def square(_: int | Int[Array, ""], r: Float[Array, "N N"]) -> Float[Array, "N N"]:
            r = r @ r
            largest = jnp.max(jnp.where(joined, jnp.max(r, 1), 0), 1)
            return r / jnp.where(largest > 0, largest, 1)[:, None]

        # its leading eigenvector, by repeated squaring
        phi = jnp.sum(jax.lax.fori_loop(0, SQUARES, square, start), 1)
        scale = jnp.max(jnp.where(joined, phi, 0), 1)
        return jnp.where(graph, phi / jnp.where(here | (scale == 0), 1, scale), jnp.inf)

    return jnp.moveaxis(jax.vmap(at)(jnp.arange(size)), 0, 2)


def reach(graph: Bool[Array, "N N"]) -> Bool[Array, "N N"]:
    """Which vertices are joined by a path."""
    start = graph | jnp.eye(len(graph), dtype=bool)
    double = lambda _, r: r.astype(jnp.float32) @ r.astype(jnp.float32) > 0  # noqa: E731
    return jax.lax.fori_loop(0, max(len(graph) - 1, 1).bit_length(), double, start)


def tied(cost: Float[Array, "i j t"]) -> Bool[Array, "i j t"]:
    """Vertices j that may be next."""
    least = jnp.min(cost, 1, keepdims=True)
    return jnp.isfinite(cost) & (cost <= least + TIE)


def success(choice: Bool[Array, "i j t"], away: Int[Array, "N N"], dtype: str = "float64") -> tuple[Array, Array]:
    """P(i, t), the probability of a shortest path, and whether every choice leads along one, 0 or 1; both [i, t]."""
    size = len(away)
    closer = choice & (away[None] == away[:, None] - 1)  # D(j, t) = D(i, t) - 1
    count = jnp.maximum(jnp.sum(choice, 1), 1).astype(dtype)
    sure = jnp.all(~choice | closer, 1)
    start = jnp.eye(size, dtype=dtype)

    def level(carry: tuple[Array, Array], d: Int[Array, ""]) -> tuple[tuple[Array, Array], None]:
        p, worst = carry
        mean = jnp.einsum("ijt,jt->it", closer.astype(dtype), p) / count
        least = jnp.min(jnp.where(choice, worst[None], 1.0), 1) * sure
        at = away == d
        return (jnp.where(at, mean, p), jnp.where(at, least, worst)), None

    return jax.lax.scan(level, (start, start), jnp.arange(1, size, dtype=jnp.int32))[0]


def chance(graph: Bool[Array, "N N"], away: Int[Array, "N N"], dtype: str = "float64") -> Float[Array, "i t"]:
    """The probability of a shortest path if any neighbour may be next."""
    return success(jnp.broadcast_to(graph[:, :, None], (len(graph),) * 3), away, dtype)[0]
