r"""Random digraphs as arrays of fixed size, with a root, a vertex to be reached and one that cannot be.

Edges fill their array with repetitions of edges that are there, so a set of edges is the same with and without them. Vertices
have random names; the order of edges is random.
Letters: m edges (source, target), N names, n vertices of one graph, c steps.
"""

from __future__ import annotations

import collections
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxdyn.data.graphs import count_of
from jaxdyn.errors import whole

__all__ = ["KINDS", "LEAST", "Digraph", "distances", "draw", "within"]

KINDS = ("random", "tree", "cycle", "dense", "no_exit")
LEAST, FEWEST = 6, 9  # vertices, edges
MOST = 4096  # names, edges or steps: what is reached after each step is a table of steps and names


class Digraph(NamedTuple):
    """A digraph, its root, a vertex ``target`` within reach and one, ``other``, beyond it."""

    edges: Int[Array, "m 2"]
    root: Int[Array, ""]
    target: Int[Array, ""]
    other: Int[Array, ""]


def draw(
    key: PRNGKeyArray,
    kind: Int[Array, ""] | int,
    nodes: Int[Array, ""] | Float[Array, ""] | float,
    *,
    names: int,
    edges: int,
    steps: int,
) -> Digraph:
    r"""One digraph of a kind.

    - "random": independent edges, the first of them from the root;
    - "tree": every new vertex hangs on an earlier one; edges left over lead forward;
    - "cycle": two directed cycles, the root on one of them;
    - "dense": the complete digraph with the root on :math:`\min(n - 3, k)` vertices, one vertex that hangs on it by a single edge,
      and an edge apart, which is the one repeated; k the most whose k(k - 1) edges fit;
    - "no_exit": independent edges, none at the root, which nothing leaves.

    The target's distance is drawn uniformly from those that occur, up to ``steps``; among its vertices, the target is. Where the
    root reaches nothing the target is the root.

    Args:
        key: of the graph.
        kind: number of one of :data:`KINDS`; may be traced, and is then moved into their range.
        nodes: n, from 6 to N; may be traced, and is then moved into this range. A graph has fewer if edges do not meet all.
        names: N, at most 4096.
        edges: m, from 9 to 4096.
        steps: the largest distance of the target, from 1 to 4096.

    Raises:
        UsageError: if a number is out of its range.
    """
    names, edges = whole("names", names, least=LEAST, most=MOST), whole("edges", edges, least=FEWEST, most=MOST)
    steps = whole("steps", steps, least=1, most=MOST)
    nodes = count_of("nodes", nodes, LEAST, names)
    kind = whole("kind", kind, least=0, most=len(KINDS) - 1, traced=True)
    k_edge, k_name, k_order, k_target = jax.random.split(key, 4)
    u = jax.random.uniform(k_edge, (2, edges), jnp.float32)
    n = jnp.clip(jnp.asarray(nodes, jnp.int32), LEAST, names)
    each = [_random(u, n), _tree(u, n), _cycle(edges, n), _dense(edges, n), _no_exit(u, n)]
    plain = jax.lax.select_n(jnp.clip(jnp.asarray(kind, jnp.int32), 0, len(KINDS) - 1), *each)
    renamed = jax.random.permutation(k_name, names).astype(jnp.int32)
    listed, root = jax.random.permutation(k_order, renamed[plain]), renamed[0]
    reached = within(listed, root, names, steps)  # [c, N]
    everything = within(listed, root, names, names)[-1]
    met = jnp.zeros(names, bool).at[listed].set(True)
    near = jnp.sum(~reached, 0)  # steps before a vertex is reached: its distance
    right = reached[-1] & (near > 0)
    per = jnp.zeros(steps + 1, jnp.int32).at[jnp.minimum(near, steps)].add(right.astype(jnp.int32))
    weight = jnp.where(right, 1 / jnp.maximum(per[jnp.minimum(near, steps)], 1), 0)
    k_right, k_wrong = jax.random.split(k_target)
    target = jnp.where(jnp.any(right), _pick(k_right, weight), root)
    return Digraph(listed, root, target, _pick(k_wrong, (met & ~everything).astype(weight.dtype)))


def within(edges: Int[Array, "m 2"], root: Int[Array, ""], names: int, steps: int) -> Bool[Array, "c N"]:
    r""":math:`V_c`, the vertices that are at most c steps from the root, for c = 0 to ``steps``."""
    first = jnp.arange(names, dtype=jnp.int32) == root

    def grow(reached: Bool[Array, " N"], _: None) -> tuple[Bool[Array, " N"], Bool[Array, " N"]]:
        more = reached.at[edges[:, 1]].max(reached[edges[:, 0]])
        return more, more

    return jnp.concatenate([first[None], jax.lax.scan(grow, first, None, steps)[1]])


def distances(edges: np.ndarray | Array, root: int) -> dict[int, int]:
    """Steps from the root to every vertex that it reaches, by breadth-first search with a queue."""
    after = collections.defaultdict(list)
    for source, target in np.asarray(edges).tolist():
        after[source].append(target)
    away, queue = {root: 0}, collections.deque([root])
    while queue:
        vertex = queue.popleft()
        for target in after[vertex]:
            if target not in away:
                away[target] = away[vertex] + 1
                queue.append(target)
    return away


def _pick(key: PRNGKeyArray, weight: Float[Array, " N"]) -> Int[Array, ""]:
    return jax.random.categorical(key, jnp.log(weight)).astype(jnp.int32)


def _below(u: Float[Array, " m"], limit: Int[Array, "*#m"]) -> Int[Array, " m"]:
    """Whole numbers from 0 to below a limit."""
    return jnp.minimum((u * limit.astype(u.dtype)).astype(jnp.int32), limit - 1)


def _random(u: Float[Array, "two m"], n: Int[Array, ""]) -> Int[Array, "m 2"]:
    """No edge leads to vertex n - 1, none to where it starts; the last edge starts at n - 1."""
    last = n - 1
    source = _below(u[0], n).at[0].set(0).at[-1].set(last)
    target = jnp.where(source == last, _below(u[1], last), (source + 1 + _below(u[1], n - 2)) % last)
    return jnp.stack([source, target], 1)


def _tree(u: Float[Array, "two m"], n: Int[Array, ""]) -> Int[Array, "m 2"]:
    """Vertex e + 1 hangs on one before it as long as there are vertices; the last edge leads from vertex n - 1 to vertex 1."""
    e = jnp.arange(u.shape[1], dtype=jnp.int32)
    grown = jnp.minimum(n - 1, u.shape[1])  # vertices of the tree
    early = _below(u[0], grown - 1)
    source = jnp.where(e < grown - 1, _below(u[0], e + 1), early)
    target = jnp.where(e < grown - 1, e + 1, early + 1 + _below(u[1], grown - 1 - early))
    return jnp.stack([source.at[-1].set(n - 1), target.at[-1].set(1)], 1)


def _cycle(edges: int, n: Int[Array, ""]) -> Int[Array, "m 2"]:
    """Two cycles of n / 2 vertices, or of as many as fit."""
    size = jnp.minimum(n // 2, edges // 2)
    e = jnp.arange(edges, dtype=jnp.int32) % (2 * size)
    first = jnp.where(e < size, 0, size)
    return jnp.stack([e, first + (e - first + 1) % size], 1)


def _dense(edges: int, n: Int[Array, ""]) -> Int[Array, "m 2"]:
    """Pairs in the order of their larger end, so that the first k(k - 1) are the complete digraph on k vertices."""
    most = int(np.flatnonzero(np.arange(edges) * (np.arange(edges) - 1) <= edges - 2)[-1])
    pairs = sorted(((a, b) for a in range(most) for b in range(most) if a != b), key=max)
    table = jnp.asarray(pairs + [(0, 1)] * (edges - len(pairs)), jnp.int32)
    k = jnp.minimum(n - 3, most)
    e = jnp.arange(edges, dtype=jnp.int32)[:, None]
    hanging, apart = jnp.stack([jnp.ones_like(k), k]), jnp.stack([k + 1, k + 2])
    return jnp.where(e < k * (k - 1), table, jnp.where(e == k * (k - 1), hanging, apart))


def _no_exit(u: Float[Array, "two m"], n: Int[Array, ""]) -> Int[Array, "m 2"]:
    """No edge at vertex 0, none back to where it starts."""
    source = _below(u[0], n - 1)
    return 1 + jnp.stack([source, (source + 1 + _below(u[1], n - 2)) % (n - 1)], 1)
