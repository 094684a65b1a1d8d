r"""Reachability with its search written out: two trees, two leaves to choose between, and the log of a breadth-first search.

Two complete trees, of which every inner vertex has b children and every leaf is h edges below its root, have random names. The
prompt lists the children of every name in the order of names, then the two candidates (one leaf of each tree, in random order) and
the root of the search:

.. math:: \langle s\rangle\ c_{1,1} \dots c_{1,b}\ \dots\ c_{N,1} \dots c_{N,b}\ x\ y\ r.

The trace is the log of the search: for each inner vertex v, in the order in which they are found, its name and its children. With
``sentences`` each vertex has a sentence of its own, ``take v : see c ... queue c ... .``, in which :data:`WORDS` stand between the
names. The solution is the candidate that the search has found. Tokens: the N names, then :data:`SPECIAL`, then the words if any.
Source: arXiv:2412.06769 (the question); arXiv:2502.03275, section 4.1 (traces of a search before a solution); the trees are ours:
every prompt and every trace has one length, no candidate is nearer to a root than the other, and its number of parents is equal.
Letters: N names, b children, h height, t tokens of a trace.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxdyn.errors import UsageError, flag, whole

__all__ = ["SPECIAL", "WORDS", "Forest", "Problem", "draw"]

MOST = 2**20  # names
SPECIAL = ("start", "none", "answer", "end", "begin latent", "end latent")
WORDS = ("take", ":", "see", "queue", ".")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Forest:
    """Sizes of the two trees, and whether the log is written in sentences."""

    children: int = 1
    height: int = 8
    sentences: bool = False

    def __post_init__(self) -> None:
        for name in ("children", "height"):
            object.__setattr__(self, name, whole(name, getattr(self, name), least=1, most=MOST))
        object.__setattr__(self, "sentences", flag("sentences", self.sentences))
        if self.children > 1 and self.height * math.log2(self.children) > math.log2(MOST) or self.names > MOST:
            raise UsageError(f"children={self.children}, height={self.height} are not allowed: there are at most {MOST} names")

    @property
    def inner(self) -> int:
        """Inner vertices of a tree."""
        return sum(self.children**i for i in range(self.height))

    @property
    def tree(self) -> int:
        """Vertices of a tree."""
        return self.inner + self.children**self.height

    @property
    def names(self) -> int:
        """Vertices of both trees."""
        return 2 * self.tree

    @property
    def prompt(self) -> int:
        """Tokens of a prompt."""
        return 1 + self.names * self.children + 3

    @property
    def trace(self) -> int:
        """Tokens of a trace."""
        return self.inner * self.record

    @property
    def record(self) -> int:
        """Tokens on one vertex in the log."""
        return 1 + 2 * self.children + len(WORDS) if self.sentences else 1 + self.children

    @property
    def text(self) -> int:
        """Tokens of the vocabulary: names, special ones, and words if the log has any."""
        return self.names + len(SPECIAL) + (len(WORDS) if self.sentences else 0)

    def special(self, name: str) -> int:
        """The number of a special token.

        Raises:
            UsageError: for a name that is none of :data:`SPECIAL`.
        """
        if name not in SPECIAL:
            raise UsageError(f"name={name!r} is not allowed: it is one of {', '.join(SPECIAL)}")
        return self.names + SPECIAL.index(name)

    def word(self, name: str) -> int:
        """The number of a word of the sentences.

        Raises:
            UsageError: for a name that is none of :data:`WORDS`, or if the log has no sentences.
        """
        if name not in WORDS or not self.sentences:
            allowed = f"it is one of {' '.join(WORDS)}" if self.sentences else "a log without sentences has no words"
            raise UsageError(f"name={name!r} is not allowed: {allowed}")
        return self.names + len(SPECIAL) + WORDS.index(name)


class Problem(NamedTuple):
    """A prompt, the log of the search, and the candidate that it finds."""

    prompt: Int[Array, " p"]
    trace: Int[Array, " t"]
    target: Int[Array, ""]


def draw(key: PRNGKeyArray, forest: Forest) -> Problem:
    """One problem.

    Vertices are numbered level by level before they are named, so that in each tree the children of vertex i are
    :math:`ib + 1` to :math:`ib + b` and the order of names in the log is that in which a queue gives them.
    """
    f, b = forest, forest.children
    k_name, k_leaf, k_order = jax.random.split(key, 3)
    named = jax.random.permutation(k_name, f.names).astype(jnp.int32).reshape(2, f.tree)
    at = jnp.arange(f.inner, dtype=jnp.int32)[:, None] * b + 1 + jnp.arange(b, dtype=jnp.int32)
    children = jnp.full((f.names, b), f.special("none"), jnp.int32).at[named[:, : f.inner]].set(named[:, at])
    leaf = jax.random.randint(k_leaf, (2, 1), f.inner, f.tree, jnp.int32)
    both = jnp.take_along_axis(named, leaf, 1)[:, 0]
    shown = jnp.where(jax.random.bernoulli(k_order), both, both[::-1])
    start = jnp.full((1,), f.special("start"), jnp.int32)
    prompt = jnp.concatenate([start, children.ravel(), shown, named[0, :1]])
    return Problem(prompt, _log(f, named[0, : f.inner, None], named[0, at]), both[0])


def _log(forest: Forest, vertex: Int[Array, "i 1"], found: Int[Array, "i b"]) -> Int[Array, " t"]:
    """The log of a search that takes these vertices in turn and finds these children."""
    if not forest.sentences:
        return jnp.concatenate([vertex, found], 1).ravel()
    take, colon, see, queue, stop = (jnp.full_like(vertex, forest.word(w)) for w in WORDS)
    return jnp.concatenate([take, vertex, colon, see, found, queue, found, stop], 1).ravel()
