r"""Sequence classes over a vocabulary in blocks: common tokens, each class's own tokens, query tokens, next tokens.

A class is a next token. Its sequence is drawn from C tokens common to all classes and D tokens of its own, independently at
every position, and ends with a query token, which several classes may share. Letters: R queries, K classes, S = C + D tokens
that a class may show, M tokens of the whole vocabulary in the order of the first line, T = C + D K contextual ones among them.
Source: the synthetic data of arXiv:2305.16380, section 7.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxdyn.errors import UsageError, is_traced, number, whole

__all__ = ["Vocabulary", "draw", "law", "laws"]


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Sizes of the blocks, and where each token is; hashable, so usable as a static argument.

    Args:
        num_last: query tokens.
        num_next_per_last: classes that share a query.
        common: tokens that every class may show.
        distinct: tokens that one class alone may show.
    """

    num_last: int
    num_next_per_last: int = 1
    common: int = 10
    distinct: int = 10

    def __post_init__(self) -> None:
        """Refuse blocks that hold no class, or a class that has no token."""
        for name, least in (("num_last", 1), ("num_next_per_last", 1), ("common", 0), ("distinct", 1)):
            object.__setattr__(self, name, whole(name, getattr(self, name), least=least))

    @property
    def classes(self) -> int:
        """K, the number of classes."""
        return self.num_last * self.num_next_per_last

    @property
    def contextual(self) -> int:
        """T, the number of tokens before the query."""
        return self.common + self.distinct * self.classes

    @property
    def size(self) -> int:
        """M, the number of tokens."""
        return self.contextual + self.num_last + self.classes

    @property
    def query(self) -> Int[np.ndarray, " K"]:
        """Which of the R queries each class has."""
        return np.repeat(np.arange(self.num_last), self.num_next_per_last)

    @property
    def label(self) -> Int[np.ndarray, " K"]:
        """Each class's next token."""
        return self.contextual + self.num_last + np.arange(self.classes)

    @property
    def support(self) -> Int[np.ndarray, "K S"]:
        """The tokens that each class may show: the common ones, then its own."""
        own = self.common + np.arange(self.classes * self.distinct).reshape(self.classes, self.distinct)
        return np.concatenate([np.tile(np.arange(self.common), (self.classes, 1)), own], 1)


def law(
    vocabulary: Vocabulary, weight: float | Float[Array, ""] = 1.0, low: float = 0.1, high: float = 1.0, dtype: str = "float64"
) -> Float[Array, " S"]:
    r"""P(token | class) on a class's support, the same for every class.

    Before normalisation each common token weighs ``weight``, and a class's own tokens weigh ``linspace(low, high, D)``.

    Raises:
        UsageError: if a weight that is not traced is negative, or none is positive.
    """
    each = [number(name, x, least=0, traced=True) for name, x in (("weight", weight), ("low", low), ("high", high))]
    counted = (vocabulary.common > 0, True, vocabulary.distinct > 1)
    if not any(is_traced(x) or x > 0 for x, counts in zip(each, counted, strict=True) if counts):
        raise UsageError(f"weight={weight}, low={low}, high={high} are not allowed: some token has a positive weight")
    common = jnp.broadcast_to(jnp.asarray(weight, dtype), vocabulary.common)
    weights = jnp.concatenate([common, jnp.linspace(low, high, vocabulary.distinct, dtype=dtype)])
    return weights / jnp.sum(weights)


def laws(vocabulary: Vocabulary, on_support: Float[Array, " S"]) -> Float[Array, "K M"]:
    """The same law over the whole vocabulary, a row for each class."""
    rows = np.arange(vocabulary.classes)[:, None]
    return jnp.zeros((vocabulary.classes, vocabulary.size), on_support.dtype).at[rows, vocabulary.support].set(on_support)


def draw(
    key: PRNGKeyArray, vocabulary: Vocabulary, on_support: Float[Array, " S"], sequences: int, length: int
) -> tuple[Int[Array, " n"], Float[Array, "n S"]]:
    """Classes of ``sequences`` sequences, and how often each token of the class's support is among ``length`` positions.

    Positions are compared with the distribution function: no token is looked up, and the counts are all that is kept. The
    uniforms are float32, so probabilities are met to 1e-7.

    Raises:
        UsageError: if a number is no whole one of at least 1, or the law is that of another number of tokens.
    """
    sequences, length = whole("sequences", sequences, least=1), whole("length", length, least=1)
    if on_support.shape != (vocabulary.common + vocabulary.distinct,):
        size = vocabulary.common + vocabulary.distinct
        raise UsageError(f"a law of shape {on_support.shape} is not allowed: a class of this vocabulary has {size} tokens")
    k_class, k_token = jax.random.split(key)
    chosen = jax.random.randint(k_class, (sequences,), 0, vocabulary.classes, jnp.int32)
    u = jax.random.uniform(k_token, (sequences, length), jnp.float32)
    below = jnp.sum(u[:, :, None] < jnp.cumsum(on_support)[:-1].astype(jnp.float32), 1, dtype=jnp.int32)
    ends = [jnp.full((sequences, 1), end, jnp.int32) for end in (0, length)]
    return chosen, jnp.diff(below, axis=1, prepend=ends[0], append=ends[1]).astype(on_support.dtype)
