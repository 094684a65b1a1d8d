r"""Effective resistances of the line graph, and their closed form on trees.

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

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxdyn import linalg
from jaxdyn.data.graphs import Edges
from jaxdyn.theories.sln.dynamics.line import adjacency
from jaxdyn.theories.sln.dynamics.navigate import reach


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
