r"""Problems of ProsQA as arrays on the device, and as prompts of symbolic tokens with random names and orders.

A prompt is that of :mod:`jaxdyn.data.reachability`,

``<eos> … <eos> a b | a b | … | a b [Q] x y [R] r``

with as many further ``<eos>`` in front as edges are missing to the longest prompt, three for each. Names, the order of edges and
that of the candidates are drawn anew each time a problem is rendered. The path is a shortest one from the root to the target; if it
is shorter than the longest, the target is repeated.
Source: arXiv:2505.12514, section 5 (tokens); padding and repeated targets are ours.
Letters: g problems, m edges (at most), l hops (at most), n tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from jaxdyn.data import digraphs, prosqa
from jaxdyn.data.reachability import SPECIAL, token
from jaxdyn.errors import UsageError, whole

__all__ = ["NAMES", "VOCABULARY", "Packed", "Prompt", "pack", "prompt_length", "render"]

NAMES = 28  # nodes of a released graph, at most
VOCABULARY = NAMES + len(SPECIAL)


class Packed(NamedTuple):
    """Problems: edges (-1 where there is none), the root asked for, the target and the negative, the path from the root."""

    edges: Int[Array, "*g m 2"]
    root: Int[Array, "*g"]
    candidates: Int[Array, "*g 2"]
    path: Int[Array, "*g l1"]


class Prompt(NamedTuple):
    """The tokens of a prompt, and the path by its names; the last node is the answer."""

    tokens: Int[Array, " n"]
    path: Int[Array, " l1"]


def prompt_length(edges: int) -> int:
    """Tokens of a prompt."""
    return 3 * edges + 5


def pack(problems: list[prosqa.Problem], edges: int = 60, hops: int = 6) -> Packed:
    """Problems as arrays of one size.

    Raises:
        UsageError: without problems; if one is not sound, or has more nodes, edges or steps than there is room
            for; the sentence has its number, counted from 1.
    """
    edges, hops = whole("edges", edges, least=1), whole("hops", hops, least=1)
    if not problems:
        raise UsageError("problems=[] is not allowed: there is at least one problem")
    for i, p in enumerate(problems, 1):
        if reason := prosqa.fault(p):
            raise UsageError(f"a problem is not sound: {reason} (problem {i})")
        if p.nodes > NAMES or len(p.edges) > edges:
            given = f"a problem has {p.nodes} nodes and {len(p.edges)} edges"
            raise UsageError(f"{given}; there is room for {NAMES} and {edges} (problem {i})")
    listed = np.full((len(problems), edges, 2), -1, np.int32)
    for row, p in zip(listed, problems, strict=True):
        row[: len(p.edges)] = p.edges
    return Packed(
        jnp.asarray(listed),
        jnp.asarray([p.root for p in problems], jnp.int32),
        jnp.asarray([(p.target, p.negative) for p in problems], jnp.int32),
        jnp.asarray([_path(p, hops, i) for i, p in enumerate(problems, 1)], jnp.int32),
    )


def _path(p: prosqa.Problem, hops: int, number: int) -> list[int]:
    """A shortest path from the root to the target, which is repeated up to ``hops`` steps; ``number`` is the problem's."""
    away = digraphs.distances(p.edges, p.root)
    if away[p.target] > hops:
        raise UsageError(f"the target is not within {hops} steps of the root (problem {number})")
    path = [p.target]
    while path[0] != p.root:
        path.insert(0, min(s for s, t in p.edges.tolist() if t == path[0] and away.get(s) == away[path[0]] - 1))
    return path + [p.target] * (hops + 1 - len(path))


def render(key: PRNGKeyArray, problem: Packed) -> Prompt:
    """The prompt of one problem, with names, order of edges and of candidates from the key."""
    k_name, k_order, k_shown = jax.random.split(key, 3)
    names = jax.random.permutation(k_name, jnp.arange(NAMES, dtype=jnp.int32))
    there = problem.edges[:, 0] >= 0
    order = jnp.argsort(there + jax.random.uniform(k_order, there.shape, jnp.float32))  # missing edges come first
    there, edges = there[order, None], names[problem.edges[order]]
    eos, bar, ask, root = (jnp.asarray([token(NAMES, name)], jnp.int32) for name in ("<eos>", "|", "[Q]", "[R]"))
    listed = jnp.where(there, jnp.concatenate([edges, jnp.broadcast_to(bar, (len(edges), 1))], 1), eos).reshape(-1)[:-1]
    candidates = names[problem.candidates]
    shown = jnp.where(jax.random.bernoulli(k_shown), candidates, candidates[::-1])
    return Prompt(jnp.concatenate([eos, listed, ask, shown, root, names[problem.root][None]]), names[problem.path])
