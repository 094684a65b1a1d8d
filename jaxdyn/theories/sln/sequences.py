r"""Shortest paths as sequences of tokens: a graph's edges, a pair of vertices, and a path between them.

``<bos> u1 v1 <e> u2 v2 <e> ... <q> source target <p> source | vertex ... target <end>``; the part after ``|`` is learned. Names of
vertices, the order of edges and their directions are random, and so is the path among the shortest ones. Sequences are filled up
with ``<end>``.
Source: arXiv:2502.08794, section 3. Departure: names are sampled afresh for every sequence.
Letters: g graphs, N names, M edges for which there is room, L tokens, i edge.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from jaxdyn.data import graphs

SPECIAL = ("<bos>", "<e>", "<q>", "<p>", "<end>")
BOS, EDGE, QUERY, PATH, END = range(len(SPECIAL))


class Problem(NamedTuple):
    """A sequence with its graph by names.

    Args:
        tokens: the sequence, with a path.
        start: where the given source stands after ``<p>``.
        learned: which tokens are to be predicted.
        graph: adjacency by names.
        away: distances by names.
        ends: source and target.
    """

    tokens: Int[Array, " L"]
    start: Int[Array, ""]
    learned: Bool[Array, " L"]
    graph: Bool[Array, "N N"]
    away: Int[Array, "N N"]
    ends: Int[Array, " 2"]


def length(names: int, edges: int) -> int:
    """Tokens of a sequence: <bos>, edges, <q> source target <p>, a path, <end>."""
    return 1 + 3 * edges + 4 + names + 1


def edge_tokens(key: PRNGKeyArray, graph: Bool[Array, "N N"], most: int) -> tuple[Int[Array, "i 2"], Int[Array, " i"]]:
    """Edges in random order and direction, padding last, and which edge of :func:`jaxdyn.data.graphs.edges_of` each one is."""
    k_order, k_turn = jax.random.split(key)
    edges = graphs.edges_of(graph, most)
    order = jnp.argsort(jax.random.uniform(k_order, (most,), jnp.float32) + ~edges.real)
    turn = jax.random.bernoulli(k_turn, 0.5, (most, 1))
    listed = edges.ends[order]
    return jnp.where(turn, listed[:, ::-1], listed), order


def problem(key: PRNGKeyArray, graph: Bool[Array, "N N"], most: int) -> Problem:
    """A random problem on a graph."""
    # a graph with random names, and a pair of its vertices
    names = len(graph)
    k_name, k_edge, k_pair, k_path = jax.random.split(key, 4)
    named = graphs.relabelled(graph, jax.random.permutation(k_name, names))
    away = graphs.distances(named)
    here = (away > 0) & (away < names)
    pair = jax.random.categorical(k_pair, jnp.where(here, 0.0, -jnp.inf).ravel())
    source, target = pair // names, pair % names
    listed, _ = edge_tokens(k_edge, named, most)
    count, steps = jnp.sum(named) // 2, away[source, target]

    def walk(at: Int[Array, ""], k: PRNGKeyArray) -> tuple[Int[Array, ""], Int[Array, ""]]:
        closer = named[at] & (away[:, target] == away[at, target] - 1)
        there = jnp.where(jnp.any(closer), jax.random.categorical(k, jnp.where(closer, 0.0, -jnp.inf)), at)
        return there, there

    # a shortest path, at random
    path = jax.lax.scan(walk, source, jax.random.split(k_path, names - 1))[1]
    size, special = length(names, most), names
    # the sequence
    i = jnp.arange(most)
    at = jnp.where(i < count, 1 + 3 * i, size)
    tokens = jnp.full(size, special + END, jnp.int32).at[0].set(special + BOS)
    for offset, part in enumerate((listed[:, 0], listed[:, 1], jnp.full(most, special + EDGE))):
        tokens = tokens.at[at + offset].set(part.astype(jnp.int32), mode="drop")
    rest = jnp.stack([special + QUERY, source, target, special + PATH, source]).astype(jnp.int32)
    tokens = tokens.at[1 + 3 * count + jnp.arange(5)].set(rest)
    start = 1 + 3 * count + 4
    k = jnp.arange(names - 1)
    tokens = tokens.at[jnp.where(k < steps, start + 1 + k, size)].set(path.astype(jnp.int32), mode="drop")
    place = jnp.arange(size)
    return Problem(tokens, start, (place > start) & (place <= start + steps + 1), named, away, jnp.stack([source, target]))


def valid(p: Problem, answer: Int[Array, " k"]) -> Bool[Array, ""]:
    """Whether the tokens after the source are a shortest path and ``<end>``."""
    names = len(p.graph)
    source, target = p.ends
    steps = p.away[source, target]
    before = jnp.concatenate([source[None], answer[:-1]])
    k = jnp.arange(answer.size)
    vertex = jnp.minimum(answer, names - 1)
    edge = p.graph[jnp.minimum(before, names - 1), vertex] & (answer < names)
    closer = p.away[vertex, target] == steps - 1 - k
    return jnp.all(jnp.where(k < steps, edge & closer, (answer == names + END) | (k > steps)))


def split(sizes: tuple[int, ...], every: int = 5) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Indices of graphs to train on and of those held out: one of ``every``, of each number of vertices, spread evenly."""
    held: list[int] = []
    for n in sorted(set(sizes)):
        group = [i for i, size in enumerate(sizes) if size == n]
        held += group[every // 2 :: every]
    return tuple(i for i in range(len(sizes)) if i not in set(held)), tuple(sorted(held))
