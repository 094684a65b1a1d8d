r"""Small balanced reachability problems, drawn on the device, as symbolic tokens.

Two families of nodes, trees by levels: a root, then ``breadth`` nodes at each of the levels 1 to ``hops``, each below a random
node of the level before. The root asked for is that of one family; the target is a random node of its last level, the negative one
of the other family's. So both candidates are equally far from their own roots and have one parent each, and names are random: no
rule that looks at fewer than all steps of a path tells them apart. A prompt is

``<eos> a b | a b | ... | a b [Q] x y [R] r``

with edges and candidates in random order; thoughts follow, or ``[A]`` and the answer.

Single edits change the right answer: ``redirected`` leads the edge into the target to the negative instead (which then has two
parents, the target none); ``exchanged`` swaps the parents of the two candidates.
Source: arXiv:2505.12514, section 5 (task and tokens, without trailing separator as in its code); the balanced small graphs and the
edits are ours.
Letters: m edges, n nodes, l hops, b nodes a level.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxdyn.errors import UsageError, whole

__all__ = ["SPECIAL", "Problem", "Sizes", "draw", "exchanged", "levels", "redirected", "render", "token"]

MOST = 4096  # nodes: a random order compares every two of them
SPECIAL = ("<eos>", "|", "[Q]", "[R]", "[A]", "<latent>")


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of the graphs; hashable."""

    hops: int = 2
    breadth: int = 2

    def __post_init__(self) -> None:
        for name in ("hops", "breadth"):
            object.__setattr__(self, name, whole(name, getattr(self, name), least=1))
        if self.nodes > MOST:
            raise UsageError(f"hops={self.hops}, breadth={self.breadth} are not allowed: there are at most {MOST} nodes")

    @property
    def nodes(self) -> int:
        """Nodes of a graph, and names."""
        return 2 * (1 + self.hops * self.breadth)

    @property
    def edges(self) -> int:
        """Edges of a graph."""
        return self.nodes - 2

    @property
    def vocabulary(self) -> int:
        """Names and special tokens."""
        return self.nodes + len(SPECIAL)

    @property
    def prompt(self) -> int:
        """Tokens of a prompt."""
        return 3 * self.edges + 5


class Problem(NamedTuple):
    """A graph, its roots (that asked for first), candidates (the target first; whether they are shown in that order), the path."""

    edges: Int[Array, "m 2"]
    roots: Int[Array, " 2"]
    candidates: Int[Array, " 2"]
    straight: Bool[Array, ""]
    path: Int[Array, " l1"]


def token(names: int, special: str) -> int:
    """The number of a special token after ``names`` names.

    Raises:
        UsageError: for a word that is none of :data:`SPECIAL`.
    """
    if special not in SPECIAL:
        raise UsageError(f"special={special!r} is not allowed: it is one of {', '.join(SPECIAL)}")
    return names + SPECIAL.index(special)


def draw(key: PRNGKeyArray, sizes: Sizes) -> Problem:
    """One problem."""
    b, hops, n, m = sizes.breadth, sizes.hops, sizes.nodes, sizes.edges
    u = jax.random.uniform(key, (2 * hops * b + 2 + n + m + 1,), jnp.float32)  # one call: they take long to compile
    placed, u_name, u_order, u_shown = jnp.split(u, [2 * hops * b + 2, 2 * hops * b + 2 + n, u.size - 1])
    placed = jnp.minimum((placed * b).astype(jnp.int32), b - 1)
    parents, picked = placed[:-2].reshape(2, hops, b).at[:, 0].set(0), placed[-2:]
    node = jnp.asarray(_numbers(sizes))  # [family, level, place]
    level = jnp.arange(hops)
    source = node[jnp.arange(2)[:, None, None], level[None, :, None], parents]
    edges = jnp.stack([source, node[:, 1:]], -1).reshape(-1, 2)
    names = _order(u_name)

    def up(place: Array, above: Array) -> tuple[Array, Array]:
        return above[place], place

    _, places = jax.lax.scan(up, picked[0], parents[0], reverse=True)
    path = names[jnp.concatenate([node[0, 0, :1], node[0, 1 + level, places]])]
    candidates = names[node[jnp.arange(2), hops, picked]]
    edges = names[edges][_order(u_order)]
    return Problem(edges, names[node[:, 0, 0]], candidates, u_shown[0] < 0.5, path)


def _order(u: Float[Array, " n"]) -> Int[Array, " n"]:
    """A random order: the ranks of random numbers."""
    at = jnp.arange(u.size, dtype=jnp.int32)
    before = (u[None] < u[:, None]) | ((u[None] == u[:, None]) & (at[None] < at[:, None]))
    return jnp.sum(before, 1).astype(jnp.int32)


def _numbers(sizes: Sizes) -> np.ndarray:
    """Numbers of nodes before they are renamed, [family, level, place]; a root fills its level."""
    rest = 2 + np.arange(2 * sizes.hops * sizes.breadth).reshape(2, sizes.hops, sizes.breadth)
    roots = np.broadcast_to(np.arange(2)[:, None, None], (2, 1, sizes.breadth))
    return np.concatenate([roots, rest], 1).astype(np.int32)


def levels(problem: Problem, sizes: Sizes) -> Int[Array, " n"]:
    """Steps from the root asked for to every node, ``hops`` + 1 where there is no path: breadth-first search."""
    start = jnp.full(sizes.nodes, sizes.hops + 1).at[problem.roots[0]].set(0)

    def relax(away: Array, _: None) -> tuple[Array, None]:
        return away.at[problem.edges[:, 1]].min(away[problem.edges[:, 0]] + 1), None

    return jnp.minimum(jax.lax.scan(relax, start, None, sizes.hops)[0], sizes.hops + 1)


def render(problem: Problem, sizes: Sizes) -> Int[Array, " n"]:
    """The tokens of a prompt."""
    bar = jnp.full((sizes.edges, 1), token(sizes.nodes, "|"), jnp.int32)
    listed = jnp.concatenate([problem.edges, bar], 1).reshape(-1)[:-1]
    shown = jnp.where(problem.straight, problem.candidates, problem.candidates[::-1])
    eos, ask, root = (jnp.asarray([token(sizes.nodes, name)], jnp.int32) for name in ("<eos>", "[Q]", "[R]"))
    return jnp.concatenate([eos, listed, ask, shown, root, problem.roots[:1]])


def redirected(problem: Problem) -> Problem:
    """The edge into the target leads to the negative instead: the other candidate is right, with one edge changed."""
    target, negative = problem.candidates
    end = jnp.where(problem.edges[:, 1] == target, negative, problem.edges[:, 1])
    return _turned(problem, jnp.stack([problem.edges[:, 0], end], 1))


def exchanged(problem: Problem) -> Problem:
    """The candidates' parents are swapped: the other candidate is right, and all in-degrees are as before."""
    end, (target, negative) = problem.edges[:, 1], problem.candidates
    swapped = jnp.where(end == target, negative, jnp.where(end == negative, target, end))
    return _turned(problem, jnp.stack([problem.edges[:, 0], swapped], 1))


def _turned(problem: Problem, edges: Int[Array, "m 2"]) -> Problem:
    """The same problem with other edges and the other candidate right; what is shown stays."""
    candidates = problem.candidates[::-1]
    return problem._replace(
        edges=edges, candidates=candidates, straight=~problem.straight, path=jnp.append(problem.path[:-1], candidates[0])
    )
