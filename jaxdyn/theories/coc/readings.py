r"""Quantities of a trained network: groups of nodes in its thoughts, edges it looks at, walks, and how open the next node is.

Groups are nested, as published. Of nodes, by thought i: the optimal one (node i of the path), the frontier (nodes at distance i
from the root), reachable nodes (within i steps), unreachable ones (all others). Of edges, by step i, when i - 1 thoughts were read:
the optimal one (from node i - 1 of the path to node i); those whose source is on the frontier, at distance i - 1; those whose
source is within i - 1 steps; and all others. At step 1 only the root is reachable, and frontier and reachable edges are the same.

The published frontier is that of walks: the ends of walks of length i, which may have been passed before. In the trees of
:mod:`jaxdyn.data.reachability` every walk of length i ends at distance i, and the two frontiers are one. A :func:`shortcut` tells
them apart: an edge from the root to a node two steps away, which is then one step away, and still the end of a walk of length two.
Source: arXiv:2505.12514, section 5 and tables 1 and 5 (groups, attention summed over the three tokens of an edge); walks as in its
released analysis; the shortcut is ours.
Letters: g graphs, h heads, i thoughts or steps, l hops, m edges, n tokens, x nodes or edges, d width.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxdyn import metrics
from jaxdyn.data import reachability
from jaxdyn.nn import Transformer, attention
from jaxdyn.nn.transformer import heads, merged, rms_norm, turned

ORDERS = ("optimal - frontier", "frontier - reachable", "reachable - unreachable")


class Posed(NamedTuple):
    """Problems, their prompts, and steps from the root to every node."""

    problem: reachability.Problem
    tokens: Int[Array, "g n"]
    away: Int[Array, "g names"]


def pose(problem: reachability.Problem, sizes: reachability.Sizes) -> Posed:
    """Problems with their prompts and distances."""
    tokens = jax.vmap(lambda p: reachability.render(p, sizes))(problem)
    return Posed(problem, tokens, jax.vmap(lambda p: reachability.levels(p, sizes))(problem))


def passed(
    shape: Transformer, params: PyTree, x: Float[Array, "g n d"]
) -> tuple[Float[Array, "g n d"], list[Float[Array, "g h n n"]]]:
    """Hidden states after the last norm for whole sequences of inputs in one causal pass, and every layer's attention weights."""
    maps = []
    for layer in shape.walk:
        w = jax.tree.map(lambda a, i=layer: a[i], params["blocks"])
        q, k, v = heads(shape, x, w)
        k, v = (jnp.repeat(part, shape.heads // shape.key_heads, axis=-2) for part in (turned(shape, k), v))
        mask = attention.causal_mask(x.shape[-2])
        out, b = attention.attend(turned(shape, q), k, v, kind=shape.attention, mask=mask)
        x = merged(shape, x, out, w)
        maps.append(b)
    return rms_norm(x, params["norm"], shape.epsilon), maps


def edges_seen(maps: Float[Array, "g h n n"], edges: int, steps: int) -> Float[Array, "i g m"]:
    """Attention to every edge at steps 1 to ``steps``: of the last token of the prompt and of each thought, mean over heads.

    Summed over the three tokens of the edge: source, target, and the mark after it (for the last edge this is [Q]).
    """
    first = 3 * edges + 4  # the last token of the prompt
    seen = maps[:, :, first : first + steps, 1 : 1 + 3 * edges]
    each = seen.reshape(*seen.shape[:-1], edges, 3).sum(-1)
    return jnp.moveaxis(each.mean(1), 1, 0)


def student(values: Float[Array, "*rest g"]) -> Float[Array, "*rest"]:
    """Student's t of the mean over graphs."""
    t: Array = jnp.mean(values, -1) / jnp.maximum(jnp.std(values, -1, ddof=1), 1e-9) * values.shape[-1] ** 0.5
    return t


def between(values: Float[Array, "i g x"], groups: tuple[Bool[Array, "i g x"], ...]) -> Float[Array, "i order g"]:
    """Mean over a group minus that over the next one, for every graph."""

    def mean(group: Bool[Array, "i g x"]) -> Float[Array, "i g"]:
        return jnp.sum(jnp.where(group, values, 0), -1) / jnp.sum(group, -1).astype(values.dtype)

    means = jnp.stack([mean(group) for group in groups], 1)
    return means[:, :-1] - means[:, 1:]


def gaps(products: Float[Array, "i g names"], of: Posed) -> Float[Array, "kind i order g"]:
    """Mean inner product of a group of nodes minus that of the next one, for every graph: nested groups, then disjoint ones."""
    count = len(products)
    i = jnp.arange(1, count + 1, dtype=jnp.int32)[:, None, None]
    optimal = jnp.moveaxis(of.problem.path[:, 1 : count + 1], 1, 0)[..., None] == jnp.arange(products.shape[-1])
    front, near, far = of.away == i, of.away < i, of.away > i
    kinds = (optimal, front, front | near, far), (optimal, front & ~optimal, near, far)
    return jnp.stack([between(products, groups) for groups in kinds])


def edge_groups(of: Posed, steps: int) -> tuple[Bool[Array, "i g m"], ...]:
    """Optimal, frontier, reachable and unreachable edges at steps 1 to ``steps``."""
    i = jnp.arange(steps, dtype=jnp.int32)[:, None, None]
    source = jnp.take_along_axis(of.away, of.problem.edges[..., 0], -1)[None]
    path = jnp.moveaxis(of.problem.path, 1, 0)[..., None]
    optimal = (of.problem.edges[None, ..., 0] == path[:steps]) & (of.problem.edges[None, ..., 1] == path[1 : steps + 1])
    return optimal, source == i, source <= i, source > i


def walks(problem: reachability.Problem, sizes: reachability.Sizes, steps: int) -> Bool[Array, "i1 names"]:
    """The ends of walks of 0 to ``steps`` edges from the root."""
    at = [jnp.arange(sizes.nodes) == problem.roots[0]]
    for _ in range(steps):
        from_here = at[-1][problem.edges[:, 0]]
        at.append(jnp.zeros(sizes.nodes, bool).at[problem.edges[:, 1]].max(from_here))
    return jnp.stack(at)


def shortcut(of: Posed) -> tuple[reachability.Problem, Int[Array, " g"]]:
    """An edge from the root to a node at distance two off the path, and that node; of every graph.

    It replaces an edge of the other family into a node from which no edge starts and which is no candidate.
    """

    def one(problem: reachability.Problem, away: Int[Array, " names"]) -> tuple[reachability.Problem, Array]:
        names = jnp.arange(away.size, dtype=jnp.int32)
        node = jnp.argmax((away == 2) & (names != problem.path[2])).astype(jnp.int32)
        inner = jnp.zeros(away.size, bool).at[problem.edges[:, 0]].set(True)
        idle = ~inner & (away == jnp.max(away)) & (names != problem.candidates[1])
        gone = problem.edges[:, 1] == jnp.argmax(idle)
        new = jnp.stack([problem.roots[0], node])
        return problem._replace(edges=jnp.where(gone[:, None], new, problem.edges)), node

    return jax.vmap(one)(of.problem, of.away)


def open_children(products: Float[Array, "i g names"], of: Posed) -> Float[Array, "i g"]:
    """Entropy of the values of the nodes at distance i, by thought i: probabilities of the next node, among these nodes alone."""
    i = jnp.arange(1, len(products) + 1, dtype=jnp.int32)[:, None, None]
    return metrics.entropy(jax.nn.softmax(jnp.where(of.away == i, products, -jnp.inf), -1))
