r"""Graphs of ProsQA, grown node by node: what their pseudo-code says, as traced numbers.

Two roots grow two families. A new node draws :math:`k \sim \mathrm{Poisson}(\mu)` parents without replacement, with probability
proportional to :math:`w\,\mathrm{depth} + 1`, among a first family (u up to .35), a second one, or all nodes so far; its label is
the union of its parents' (1: below node 0, 2: below node 1). The target is a leaf below its root alone, three steps away or more.
The forms are those of :mod:`jaxdyn.data.prosqa`: "printed", the pseudo-code in print (families with nodes of neither, up to .35
and .7; root 0; any leaf), and "derived", which was fitted to the released files (families alone, up to .35 and .8; the root whose
deepest leaf is deeper; one of its deepest leaves). Graphs without such a target are drawn in vain and flagged.
Source: arXiv:2412.06769, appendix A.2. Letters: N nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

FORMS = ("printed", "derived")
STATISTICS = ("nodes", "edges", "steps to the target", "shortest paths to the target")
FAR = 3  # least distance of the target
MOST = 12  # parents of a node, at most


class Rule(NamedTuple):
    """Numbers of the pseudo-code; ``derived``: 1 for the form that fits the released files, 0 for the printed one."""

    derived: Float[Array, ""] | float
    nodes: Float[Array, ""] | float
    parents: Float[Array, ""] | float
    weight: Float[Array, ""] | float


class Grown(NamedTuple):
    """Edges from row to column, labels (-1: no such node yet), and depths."""

    edges: Bool[Array, "N N"]
    label: Int[Array, " N"]
    depth: Float[Array, " N"]


def grow(key: PRNGKeyArray, rule: Rule, size: int) -> Grown:
    """A graph of at most ``size`` nodes, isolated ones included."""
    at = jnp.arange(size)
    start = Grown(
        jnp.zeros((size, size), bool), jnp.where(at == 0, 1, jnp.where(at == 1, 2, -1)).astype(jnp.int32), jnp.zeros(size)
    )
    derived = jnp.asarray(rule.derived) > 0.5
    j = jnp.arange(MOST + 1)
    below = jnp.cumsum(jnp.exp(j * jnp.log(rule.parents) - rule.parents - gammaln(j + 1.0)))

    def add(now: Grown, node: Int[Array, ""]) -> tuple[Grown, None]:
        k_count, k_family, k_which = jax.random.split(jax.random.fold_in(key, node), 3)
        # how many parents, and of which family
        count = jnp.sum(jax.random.uniform(k_count, (), below.dtype) > below)
        u = jax.random.uniform(k_family, (), below.dtype)
        family = jnp.where(u <= 0.35, 1, jnp.where(u <= jnp.where(derived, 0.8, 0.7), 2, 0))
        both = (now.label == family) | (~derived & (now.label == 0))
        allowed = (now.label >= 0) & ((family == 0) | both)
        # parents without replacement: the largest keys of a race
        race = jnp.log(rule.weight * now.depth + 1) + jax.random.gumbel(k_which, (size,), now.depth.dtype)
        place = jnp.argsort(jnp.argsort(-jnp.where(allowed, race, -jnp.inf)))
        chosen = allowed & (place < count) & (node < rule.nodes)
        bits = [jnp.any(chosen & (now.label & bit > 0)) * bit for bit in (1, 2)]
        nearest = jnp.min(jnp.where(chosen, now.depth, jnp.inf))
        here = (at == node) & (node < rule.nodes)
        label = jnp.where(here, bits[0] + bits[1], now.label).astype(jnp.int32)
        depth = jnp.where(here, jnp.where(jnp.any(chosen), 1 + nearest, 0), now.depth)
        return Grown(jnp.where(here, chosen[:, None], now.edges), label, depth), None

    return jax.lax.scan(add, start, jnp.arange(2, size))[0]


def described(key: PRNGKeyArray, rule: Rule, size: int) -> tuple[Float[Array, " statistic"], Bool[Array, ""]]:
    """:data:`STATISTICS` of a graph with a target, and whether it has one that is far enough."""
    k_grow, k_coin, k_target = jax.random.split(key, 3)
    grown = grow(k_grow, rule, size)
    derived = jnp.asarray(rule.derived) > 0.5
    away, paths = zip(*(searched(grown.edges, root) for root in (0, 1)), strict=True)
    # leaves of either family, and how deep they are
    idle = ~jnp.any(grown.edges, 1) & (jnp.arange(size) > 1)
    leaves = [idle & (grown.label == bit) for bit in (1, 2)]
    deepest = [jnp.max(jnp.where(leaf, far, -1)) for leaf, far in zip(leaves, away, strict=True)]
    # root and target
    coin = jax.random.bernoulli(k_coin)
    second = derived & ((deepest[1] > deepest[0]) | ((deepest[1] == deepest[0]) & coin))
    leaf, far, ways = (jnp.where(second, b, a) for a, b in (leaves, away, paths))
    pool = leaf & (~derived | (far == jnp.max(jnp.where(leaf, far, -1))))
    target = jax.random.categorical(k_target, jnp.where(pool, 0.0, -jnp.inf))
    taken = jnp.any(leaves[0]) & jnp.any(leaves[1]) & (far[target] >= FAR) & pool[target]
    met = jnp.any(grown.edges, 0) | jnp.any(grown.edges, 1) | (jnp.arange(size) < 2)
    numbers = jnp.sum(met), jnp.sum(grown.edges), far[target], ways[target]
    return jnp.stack([x.astype(grown.depth.dtype) for x in numbers]), taken


def searched(edges: Bool[Array, "N N"], root: int) -> tuple[Int[Array, " N"], Float[Array, " N"]]:
    """Steps from a root to every node, N where there is no path, and the number of shortest paths."""
    size = len(edges)
    first = jnp.arange(size) == root
    links = edges.astype("float64")

    def step(carry: tuple[Array, Array], d: Int[Array, ""]) -> tuple[tuple[Array, Array], None]:
        away, paths = carry
        arriving = jnp.where(away == d - 1, paths, 0) @ links
        new = (arriving > 0) & (away == size)
        return (jnp.where(new, d, away), jnp.where(new, arriving, paths)), None

    start = jnp.where(first, 0, size), first.astype("float64")
    return jax.lax.scan(step, start, jnp.arange(1, size))[0]
