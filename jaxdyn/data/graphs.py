r"""Connected simple undirected graphs: all of them up to isomorphism, and random ones as arrays of fixed size.

A graph is its adjacency matrix; one with fewer vertices than its matrix has isolated ones at the end. Graphs of up to 7 vertices
come from networkx's atlas, which ends there, larger ones by adding a vertex to all smaller ones (every connected graph has a vertex
whose removal leaves it connected), trees from networkx's enumeration.
Letters: g graphs, N rows of a matrix, n vertices of one graph, m edges.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Real

from jaxdyn.errors import UsageError, is_traced, missing, number, whole

__all__ = [
    "KINDS",
    "Edges",
    "chance",
    "connected",
    "count_of",
    "distances",
    "draw",
    "edges_of",
    "relabelled",
    "stacked",
    "trees",
]

KINDS = ("random", "tree", "tree+3", "disconnected")
ATLAS = 7  # vertices of the largest graphs in the atlas
TREES = 18  # vertices of the largest trees that are listed: there are 123,867, and with each vertex more 2.6 times as many
LEAST, MOST = 4, 256  # vertices of a random graph: two halves are trees; breadth-first search costs the fourth power
TRIES = 5000  # graphs of which one is connected
RARE = 4e-3  # a graph is connected with a probability above: then TRIES fail with one of 2e-9


class Edges(NamedTuple):
    """Edges of a graph, each with its smaller vertex first, and which of the rows are edges."""

    ends: Int[Array, "m 2"]
    real: Bool[Array, " m"]


def connected(vertices: int) -> tuple[np.ndarray, ...]:
    """Adjacency matrices of all connected graphs with this many vertices, one of each isomorphism class.

    There are 1, 2, 6, 21, 112, 853, 11117 for 2 to 8 vertices; 8 take about a minute.

    Raises:
        UsageError: for fewer than 1 or more than 8 vertices.
    """
    return _connected(whole("vertices", vertices, least=1, most=ATLAS + 1))


@functools.cache
def _connected(vertices: int) -> tuple[np.ndarray, ...]:
    if vertices > ATLAS:
        return extended(_connected(vertices - 1))
    nx = _networkx()
    atlas = (g for g in nx.graph_atlas_g() if len(g) == vertices and nx.is_connected(g))
    return tuple(nx.to_numpy_array(g, dtype=bool) for g in atlas)


def extended(smaller: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """One of each class of graphs with one vertex more, by invariants and then tests of isomorphism."""
    nx = _networkx()
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


def trees(vertices: int) -> tuple[np.ndarray, ...]:
    """Adjacency matrices of all trees with this many vertices, one of each isomorphism class.

    Raises:
        UsageError: for fewer than 2 or more than 18 vertices.
    """
    return _trees(whole("vertices", vertices, least=2, most=TREES))


@functools.cache
def _trees(vertices: int) -> tuple[np.ndarray, ...]:
    nx = _networkx()
    return tuple(nx.to_numpy_array(g, nodelist=range(vertices), dtype=bool) for g in nx.nonisomorphic_trees(vertices))


def _networkx() -> Any:
    try:
        import networkx
    except ImportError:
        raise missing("listing graphs or trees up to isomorphism", "networkx", "suite") from None
    return networkx


def stacked(graphs: tuple[np.ndarray, ...], size: int) -> np.ndarray:
    """Graphs with isolated vertices added, [g, N, N].

    Raises:
        UsageError: if a graph has more than ``size`` vertices.
    """
    size = whole("size", size, least=max(map(len, graphs), default=1))
    out = np.zeros((len(graphs), size, size), bool)
    for padded, graph in zip(out, graphs, strict=True):
        padded[: len(graph), : len(graph)] = graph
    return out


def edges_of(adjacency: Bool[Array, "N N"], most: int) -> Edges:
    """The edges, in an array of ``most`` rows; of a traced graph with more, the first ones.

    Raises:
        UsageError: if a graph that is not traced has more edges.
    """
    most = whole("most", most, least=1 if is_traced(adjacency) else max(1, int(np.asarray(adjacency).sum()) // 2))
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
    vertices: Real[Array, ""] | float,
    density: Float[Array, ""] | float,
    *,
    size: int,
) -> Bool[Array, "N N"]:
    r"""One random graph of a kind.

    - "random": every pair is an edge with probability ``density``; drawn again until connected, and if 5000 such graphs are not, a
      tree of the next kind is laid over the last one;
    - "tree": vertex i hangs on one of 0 to i - 1, uniformly (a random recursive tree);
    - "tree+3": such a tree and 3 further edges, fewer where there is no room;
    - "disconnected": two such trees, on the first half of the vertices and on the others.

    Args:
        key: of the graph.
        kind: number of one of :data:`KINDS`; may be traced, and is then moved into their range.
        vertices: n, from 4 to N; may be traced, and is then moved into this range.
        density: probability of an edge; may be traced.
        size: N, at most 256.

    Raises:
        UsageError: if a number is out of its range; for a random graph whose :func:`chance` to be connected is below 1 in 250. The
            latter is not checked where one of the numbers is traced.
    """
    size = whole("size", size, least=LEAST, most=MOST)
    _check(kind, vertices, density, size)
    k_random, k_tree, k_more = jax.random.split(key, 3)
    n = jnp.clip(jnp.asarray(vertices, jnp.int32), LEAST, size)
    tree = _tree(k_tree, n, jnp.int32(0), size)
    forest = _tree(k_tree, n // 2, jnp.int32(0), size) | _tree(k_more, n, n // 2, size)
    each = (_random(k_random, tree, n, density, size), tree, _with_more(k_more, tree, n, 3), forest)
    return jax.lax.select_n(jnp.clip(jnp.asarray(kind, jnp.int32), 0, len(KINDS) - 1), *each)


def _check(kind: Any, vertices: Any, density: Any, size: int) -> None:
    """Refuse numbers of :func:`draw` that are not traced and out of their range."""
    kind = whole("kind", kind, least=0, most=len(KINDS) - 1, traced=True)
    vertices = count_of("vertices", vertices, LEAST, size)
    density = number("density", density, least=0, most=1, traced=True)
    if any(map(is_traced, (kind, vertices, density))) or KINDS[kind] != "random":
        return
    if chance(int(vertices), density) < RARE:
        raise UsageError(
            f"density={density} is not allowed: of {vertices:g} vertices, fewer than one such graph in {1 / RARE:g} is connected"
        )


def count_of(name: str, value: Any, least: int, most: int) -> Any:
    """A whole number that may be a float, as swept numbers are, or traced.

    Raises:
        UsageError: if it is not traced and not whole or out of its range.
    """
    value = number(name, value, least=least, most=most, traced=True)
    if not is_traced(value) and value % 1:
        raise UsageError(f"{name}={value} is not allowed: {name} is a whole number")
    return value


def chance(vertices: int, density: float) -> float:
    r"""The probability that a graph is connected whose pairs are edges with a probability p each, independently.

    A search from one vertex knows d of the n vertices and has looked for the neighbours of t of these. The next one has a number
    of new neighbours of law :math:`B(n - d, p)`; the graph is connected if d > t until d = n. All terms are positive.

    Raises:
        UsageError: if a number is out of its range.
    """
    n, p = whole("vertices", vertices, least=1, most=MOST), number("density", density, least=0, most=1)
    law = np.zeros((n, n))  # of the number of new neighbours (columns) among so many vertices (rows)
    law[0, 0] = 1
    for unknown in range(1, n):
        law[unknown] = (1 - p) * law[unknown - 1]
        law[unknown, 1:] += p * law[unknown - 1, :-1]
    step = np.zeros((n + 1, n + 1))
    for known in range(1, n + 1):
        step[known, known:] = law[n - known, : n - known + 1]
    state = np.zeros(n + 1)
    state[1] = 1
    for looked in range(n - 1):
        state[: looked + 1] = 0
        state = state @ step
    return float(state[n])


def _both(upper: Bool[Array, "N N"]) -> Bool[Array, "N N"]:
    return upper | upper.T


def _pairs(n: Int[Array, ""], size: int) -> Bool[Array, "N N"]:
    """Pairs of vertices of the graph, the smaller one first."""
    here = jnp.arange(size) < n
    return jnp.triu(here[:, None] & here, 1)


def _random(
    key: PRNGKeyArray, tree: Bool[Array, "N N"], n: Int[Array, ""], density: Float[Array, ""] | float, size: int
) -> Bool[Array, "N N"]:
    """A connected graph; with the tree, if none was found."""

    def at(i: Int[Array, ""]) -> Bool[Array, "N N"]:
        u = jax.random.uniform(jax.random.fold_in(key, i), (size, size), jnp.float32)
        return _both((u < density) & _pairs(n, size))

    def parted(graph: Bool[Array, "N N"]) -> Bool[Array, ""]:
        return jnp.any((distances(graph)[0] == size) & (jnp.arange(size) < n))

    def go_on(state: tuple[Int[Array, ""], Bool[Array, "N N"], Bool[Array, ""]]) -> Bool[Array, ""]:
        return state[2] & (state[0] < TRIES)

    def again(state: tuple[Int[Array, ""], Bool[Array, "N N"], Bool[Array, ""]]) -> tuple[Any, ...]:
        graph = at(state[0])
        return state[0] + 1, graph, parted(graph)

    first = at(jnp.int32(0))
    _, graph, failed = jax.lax.while_loop(go_on, again, (jnp.int32(1), first, parted(first)))
    return graph | (tree & failed)


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
