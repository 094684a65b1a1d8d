r"""Connected simple undirected graphs: all of them up to isomorphism, and random ones as arrays of fixed size.

A graph is its adjacency matrix; one with fewer vertices than its matrix has isolated ones at the end. Graphs of up to 7 vertices
come from networkx's atlas, larger ones by adding a vertex to all smaller ones (every connected graph has a vertex whose removal
leaves it connected), trees from networkx's enumeration.
Letters: g graphs, N rows of a matrix, n vertices of one graph, m edges.
"""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxdyn.errors import UsageError

__all__ = ["KINDS", "Edges", "connected", "distances", "draw", "edges_of", "relabelled", "stacked", "trees"]

KINDS = ("random", "tree", "tree+3", "disconnected")
ATLAS = 7  # vertices of the largest graphs in the atlas


class Edges(NamedTuple):
    """Edges of a graph, each with its smaller vertex first, and which of the rows are edges."""

    ends: Int[Array, "m 2"]
    real: Bool[Array, " m"]


@functools.cache
def connected(vertices: int) -> tuple[np.ndarray, ...]:
    """Adjacency matrices of all connected graphs with this many vertices, one of each isomorphism class.

    There are 1, 2, 6, 21, 112, 853, 11117 for 2 to 8 vertices; 8 take about a minute.

    Raises:
        UsageError: for fewer than 1 or more than 8 vertices.
    """
    if not 1 <= vertices <= ATLAS + 1:
        raise UsageError(f"vertices={vertices} is not allowed: it is between 1 and {ATLAS + 1}")
    if vertices > ATLAS:
        return extended(connected(vertices - 1))
    import networkx as nx

    atlas = (g for g in nx.graph_atlas_g() if len(g) == vertices and nx.is_connected(g))
    return tuple(nx.to_numpy_array(g, dtype=bool) for g in atlas)


def extended(smaller: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """One of each class of graphs with one vertex more, by invariants and then tests of isomorphism."""
    import networkx as nx

    n = len(smaller[0])
    subsets = np.array(list(itertools.product([False, True], repeat=n)))[1:]
    classes: dict[bytes, list[np.ndarray]] = {}
    for old in smaller:
        each = np.zeros((len(subsets), n + 1, n + 1), bool)
        each[:, :n, :n] = old
        each[:, n, :n] = each[:, :n, n] = subsets
        for graph, signature in zip(each, signatures(each), strict=True):
            same = classes.setdefault(signature, [])
            if not any(nx.is_isomorphic(nx.from_numpy_array(graph), nx.from_numpy_array(other)) for other in same):
                same.append(graph)
    return tuple(graph for same in classes.values() for graph in same)


def signatures(graphs: np.ndarray) -> list[bytes]:
    """Walks between neighbours and closed walks of every length, as sorted rows: equal for isomorphic graphs."""
    power, rows, a = np.eye(graphs.shape[1], dtype=np.int64), [], graphs.astype(np.int64)
    for _ in range(graphs.shape[1]):
        power = power @ a
        rows.append(np.diagonal(power, axis1=1, axis2=2))
        rows.append((power**2).sum(2))
    table = np.stack(rows, 2)
    return [one[np.lexsort(one.T)].tobytes() for one in table]


@functools.cache
def trees(vertices: int) -> tuple[np.ndarray, ...]:
    """Adjacency matrices of all trees with this many vertices, one of each isomorphism class.

    Raises:
        UsageError: for fewer than 2 vertices.
    """
    if vertices < 2:
        raise UsageError(f"vertices={vertices} is not allowed: it is at least 2")
    import networkx as nx

    return tuple(nx.to_numpy_array(g, nodelist=range(vertices), dtype=bool) for g in nx.nonisomorphic_trees(vertices))


def stacked(graphs: tuple[np.ndarray, ...], size: int) -> np.ndarray:
    """Graphs with isolated vertices added, [g, N, N]."""
    out = np.zeros((len(graphs), size, size), bool)
    for padded, graph in zip(out, graphs, strict=True):
        padded[: len(graph), : len(graph)] = graph
    return out


def edges_of(adjacency: Bool[Array, "N N"], most: int) -> Edges:
    """The edges, in an array of ``most`` rows; there must not be more."""
    first, second = jnp.nonzero(jnp.triu(adjacency), size=most, fill_value=0)
    return Edges(jnp.stack([first, second], 1).astype(jnp.int32), jnp.arange(most) < jnp.sum(adjacency) // 2)


def distances(adjacency: Bool[Array, "N N"]) -> Int[Array, "N N"]:
    """Steps between any two vertices by breadth-first search; N where there is no path."""
    size = len(adjacency)
    wide = adjacency.astype(jnp.float32)

    def grow(reached: Bool[Array, "N N"], _: None) -> tuple[Bool[Array, "N N"], Bool[Array, "N N"]]:
        return reached | (reached.astype(jnp.float32) @ wide > 0), reached

    return jnp.sum(~jax.lax.scan(grow, jnp.eye(size, dtype=bool), None, size)[1], 0).astype(jnp.int32)


def relabelled(adjacency: Bool[Array, "N N"], order: Int[Array, " N"]) -> Bool[Array, "N N"]:
    """The graph whose vertex i is the vertex ``order[i]`` of the given one."""
    return adjacency[order][:, order]


def draw(
    key: PRNGKeyArray,
    kind: Int[Array, ""] | int,
    vertices: Float[Array, ""] | float,
    density: Float[Array, ""] | float,
    *,
    size: int,
) -> Bool[Array, "N N"]:
    r"""One random graph of a kind.

    - "random": every pair is an edge with probability ``density``; drawn again until connected;
    - "tree": vertex i hangs on one of 0 to i - 1, uniformly (a random recursive tree);
    - "tree+3": such a tree and 3 further edges, fewer where there is no room;
    - "disconnected": two such trees, on the first half of the vertices and on the others.

    Args:
        key: of the graph.
        kind: number of one of :data:`KINDS`, may be traced.
        vertices: n, at least 4, may be traced.
        density: probability of an edge.
        size: N, at least n.
    """
    k_random, k_tree, k_more = jax.random.split(key, 3)
    n = jnp.asarray(vertices, jnp.int32)
    tree = _tree(k_tree, n, jnp.int32(0), size)
    forest = _tree(k_tree, n // 2, jnp.int32(0), size) | _tree(k_more, n, n // 2, size)
    each = (_random(k_random, n, density, size), tree, _with_more(k_more, tree, n, 3), forest)
    return jax.lax.select_n(jnp.asarray(kind, jnp.int32), *each)


def _both(upper: Bool[Array, "N N"]) -> Bool[Array, "N N"]:
    return upper | upper.T


def _pairs(n: Int[Array, ""], size: int) -> Bool[Array, "N N"]:
    """Pairs of vertices of the graph, the smaller one first."""
    here = jnp.arange(size) < n
    return jnp.triu(here[:, None] & here, 1)


def _random(key: PRNGKeyArray, n: Int[Array, ""], density: Float[Array, ""] | float, size: int) -> Bool[Array, "N N"]:
    def at(i: Int[Array, ""]) -> Bool[Array, "N N"]:
        u = jax.random.uniform(jax.random.fold_in(key, i), (size, size), jnp.float32)
        return _both((u < density) & _pairs(n, size))

    def broken(state: tuple[Int[Array, ""], Bool[Array, "N N"]]) -> Bool[Array, ""]:
        away = distances(state[1])[0]
        return jnp.any((away == size) & (jnp.arange(size) < n)) & (state[0] < 5000)

    return jax.lax.while_loop(broken, lambda s: (s[0] + 1, at(s[0] + 1)), (jnp.int32(0), at(jnp.int32(0))))[1]


def _tree(key: PRNGKeyArray, n: Int[Array, ""], root: Int[Array, ""], size: int) -> Bool[Array, "N N"]:
    i = jnp.arange(size, dtype=jnp.int32)
    u = jax.random.uniform(key, (size,), jnp.float32)
    parent = root + jnp.minimum((u * (i - root)).astype(jnp.int32), jnp.maximum(i - root - 1, 0))
    grown = (i > root) & (i < n)
    return _both(jnp.zeros((size, size), bool).at[jnp.where(grown, parent, size), i].set(True, mode="drop"))


def _with_more(key: PRNGKeyArray, graph: Bool[Array, "N N"], n: Int[Array, ""], more: int) -> Bool[Array, "N N"]:
    """The graph with further edges, drawn uniformly from the pairs that are none."""
    u = jnp.where(_pairs(n, len(graph)) & ~graph, jax.random.uniform(key, graph.shape, jnp.float32), -1)
    cut = jnp.sort(u.ravel())[-more]
    return graph | _both((u >= cut) & (u >= 0))
