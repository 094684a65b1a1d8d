r"""Line graphs and their spectrum, effective resistances, and navigation by distances between edges.

The line graph of a graph, the spectrum of its Laplacian, and embeddings of edges by it.

.. math:: L_{sym} = I - D^{-1/2} A D^{-1/2} = V \Lambda V^\top, \qquad
   x_e = V_{e\cdot}\, \mathrm{diag} f \;\text{("sym")}, \qquad x_e = d_e^{-1/2} V_{e\cdot}\, \mathrm{diag} f \;\text{("rw")},
   \qquad f_k = \lambda_k^{-p}

with A the adjacency of the line graph (edges that share an end), :math:`d_{uv} = \deg u + \deg v - 2`, and without the trivial
eigenvector. A cut after k eigenvectors is moved on to the end of its cluster of equal eigenvalues, or the result would
depend on the solver.
Source: arXiv:2502.08794, section 4; which f and how many eigenvectors the talks do not say.
Letters: m edges (some of them padding), N vertices, k eigenvectors.

Navigation by distances between edges, and the exact probability that it takes a shortest path.

At vertex i with target t the next vertex is the j of

.. math:: \arg\min_{j \in N(i)}\; \min_{k \in N(t)} \lVert x_{ij} - x_{kt} \rVert^2

Vertices within ``TIE`` of the minimum tie, and one of them is taken uniformly. With D the distance in the graph,

.. math:: P(t, t) = 1, \qquad P(i, t) = \overline{\mathbb 1\{D(j, t) = D(i, t) - 1\}\, P(j, t)} \text{ over the tied } j

is the probability of a shortest path, without sampling; with the minimum instead of the mean, whether every choice is good.
Source: arXiv:2502.08794, section 4; rule for ties: ours. The baseline is arXiv:2004.01163: the ground state of the Laplacian
without the target's row and column; the next vertex has the smallest entry.
Letters: m edges, N vertices i, j, t.

Effective resistances of the line graph, and their closed form on trees.

.. math:: R_{ef} = (1_e - 1_f)^\top (D - A)^+ (1_e - 1_f), \qquad (D - A)^+ = (D - A + J/m)^{-1} - J/m

with J the matrix of ones (on each component, if there are several). The line graph of a tree is a chain of cliques
:math:`K_{\deg v}` joined at edges, each of resistance
:math:`2 / \deg v` between any two of its vertices, so that

.. math:: R_{ef} = \sum_{v} 2 / \deg v

over the vertices v of the path that joins e and f, its ends included.
Source: background in arXiv:2502.08794 (resistance and random walks); the sum on trees is derived here.
Letters: m edges, N vertices.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxdyn import linalg
from jaxdyn.data.graphs import Edges

ALL = 1e6  # eigenvectors: more than there are
CLUSTER = 1e-8  # eigenvalues nearer than this are equal
PADDED = 10.0  # eigenvalue of edges that are padding, above all others


class Spectrum(NamedTuple):
    """Eigenvalues of the normalised Laplacian in ascending order, eigenvectors as columns, degrees of edges; padding comes last."""

    values: Float[Array, " m"]
    vectors: Float[Array, "m m"]
    degree: Float[Array, " m"]
    real: Bool[Array, " m"]


class Embedding(NamedTuple):
    r"""A row of the table: divided by :math:`\sqrt{d_e}` (1, "rw") or not (0, "sym"), power p, vectors, clusters completed (1)."""

    walk: Float[Array, ""] | float
    power: Float[Array, ""] | float
    vectors: Float[Array, ""] | float = ALL
    complete: Float[Array, ""] | float = 1.0


EMBEDDINGS = {
    "sym, 1, 2": Embedding(0.0, 0.0, 2.0),
    "sym, 1, 3": Embedding(0.0, 0.0, 3.0),
    "sym, 1, 4": Embedding(0.0, 0.0, 4.0),
    "sym, 1, 5": Embedding(0.0, 0.0, 5.0),
    "sym, 1, all": Embedding(0.0, 0.0),
    "rw, 1, 4": Embedding(1.0, 0.0, 4.0),
    "sym, 1/sqrt, all": Embedding(0.0, 0.5),
    "sym, 1/lam, all": Embedding(0.0, 1.0),
    "rw, 1/lam, 4": Embedding(1.0, 1.0, 4.0),
    "rw, 1/lam, 6": Embedding(1.0, 1.0, 6.0),
    "rw, 1/sqrt, all": Embedding(1.0, 0.5),
    "rw, 1/lam, all": Embedding(1.0, 1.0),
    "rw, 1/lam^2, all": Embedding(1.0, 2.0),
}


def incidence(edges: Edges, size: int) -> Bool[Array, "m N"]:
    """Which vertices are ends of which edge."""
    at = jnp.arange(size)
    return ((edges.ends[:, :1] == at) | (edges.ends[:, 1:] == at)) & edges.real[:, None]


def adjacency(edges: Edges, size: int) -> Bool[Array, "m m"]:
    """Which edges share an end."""
    b = incidence(edges, size).astype(jnp.float32)
    return (b @ b.T > 0) & ~jnp.eye(len(b), dtype=bool)


def spectrum(edges: Edges, size: int, dtype: str = "float64") -> Spectrum:
    """Eigenvalues and eigenvectors of the line graph's normalised Laplacian."""
    a = adjacency(edges, size).astype(dtype)
    degree = jnp.sum(a, 1)
    root = jnp.where(degree > 0, jnp.maximum(degree, 1) ** -0.5, 0)
    eye = jnp.eye(len(a), dtype=a.dtype)
    values, vectors = linalg.eigh(jnp.where(edges.real, 1.0, PADDED).astype(a.dtype) * eye - root[:, None] * a * root)
    return Spectrum(values, vectors, degree, edges.real)


def factors(s: Spectrum, e: Embedding) -> Float[Array, " k"]:
    """F of every eigenvector; 0 for the trivial one, for padding, and beyond the cut."""
    at = jnp.arange(s.values.size)
    used = (at > 0) & (s.values < PADDED / 2) & (s.values > 1e-12)
    linked = jnp.concatenate([jnp.zeros(1, bool), jnp.diff(s.values) < CLUSTER])
    cut = jnp.cumsum(~linked)[jnp.minimum(jnp.asarray(e.vectors, jnp.int32), s.values.size - 1)]
    within = jnp.where(e.complete > 0.5, jnp.cumsum(~linked) <= cut, at <= e.vectors)
    return jnp.where(used & within, jnp.where(used, s.values, 1.0) ** -e.power, 0)


def squared_distances(s: Spectrum, e: Embedding) -> Float[Array, "m m"]:
    """Squared distances between embeddings of edges."""
    scale = jnp.where(e.walk > 0.5, jnp.maximum(s.degree, 1) ** -0.5, 1.0)
    x = s.vectors * factors(s, e) * scale[:, None]
    return jnp.sum(jnp.square(x[:, None] - x), -1)


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


def resistances(edges: Edges, size: int, dtype: str = "float64") -> Float[Array, "m m"]:
    """Resistances between edges by the inverse of a matrix, without a spectrum; 0 for padding and between components."""
    joined = reach(adjacency(edges, size))
    a = adjacency(edges, size).astype(dtype)
    both = edges.real[:, None] & edges.real & joined
    laplacian = jnp.diag(jnp.where(edges.real, jnp.sum(a, 1), 1.0)) - a
    inverse = linalg.inv(laplacian + jnp.where(both, 1 / jnp.sum(both, 1), 0).astype(dtype))
    at = jnp.diagonal(inverse)
    return jnp.where(both, at[:, None] + at - 2 * inverse, 0)


def steps(edges: Edges, away: Int[Array, "N N"]) -> Int[Array, "m m"]:
    """Steps between edges in the line graph."""
    near = _nearest(edges, away)
    e = jnp.min(near[:, edges.ends], 2)  # [m, m], least distance of ends
    return jnp.where(jnp.eye(len(e), dtype=bool) | ~(edges.real[:, None] & edges.real), 0, e + 1)


def along(edges: Edges, graph: Bool[Array, "N N"], away: Int[Array, "N N"], dtype: str = "float64") -> Float[Array, "m m"]:
    r""":math:`\sum 2/\deg v` over the vertices of shortest paths between e and f, ends included: one path, in a tree."""
    near = _nearest(edges, away)  # [m, N]
    least = jnp.min(near[:, edges.ends], 2)
    on = near[:, None] + near[None] == least[..., None]  # [m, m, N]
    weight = 2 / jnp.maximum(jnp.sum(graph, 1), 1).astype(dtype)
    apart = edges.real[:, None] & edges.real & ~jnp.eye(len(near), dtype=bool)
    return jnp.where(apart, jnp.sum(jnp.where(on, weight, 0), -1), 0)


def _nearest(edges: Edges, away: Int[Array, "N N"]) -> Int[Array, "m N"]:
    """Steps from the nearer end of an edge."""
    return jnp.min(away[edges.ends], 1)
