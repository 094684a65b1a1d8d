r"""The line graph of a graph, the spectrum of its Laplacian, and embeddings of edges by it.

.. math:: L_{sym} = I - D^{-1/2} A D^{-1/2} = V \Lambda V^\top, \qquad
   x_e = V_{e\cdot}\, \mathrm{diag} f \;\text{("sym")}, \qquad x_e = d_e^{-1/2} V_{e\cdot}\, \mathrm{diag} f \;\text{("rw")},
   \qquad f_k = \lambda_k^{-p}

with A the adjacency of the line graph (edges that share an end), :math:`d_{uv} = \deg u + \deg v - 2`, and without the trivial
eigenvector. A cut after k eigenvectors is moved on to the end of its cluster of equal eigenvalues, or the result would
depend on the solver.
Source: arXiv:2502.08794, section 4; which f and how many eigenvectors the talks do not say.
Letters: m edges (some of them padding), N vertices, k eigenvectors.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

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
