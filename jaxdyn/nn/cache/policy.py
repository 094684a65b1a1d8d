r"""Which key a full cache gives up for the current token.

A cache of L keys holds the current one, too: a victim is chosen among the L keys before it, and then the query attends to L keys.

============= =================================================================================
dense         none; a text longer than the cache is refused
window        the oldest
streaming     the oldest but for the first S tokens (sinks)
h2o           the one with the least attention so far, but for the last r tokens
anti_h2o      the one with the most, but for the last r tokens
random        any but the last r tokens
oracle_global the one with the least attention in the whole text, but for the last r tokens
============= =================================================================================

``oracle_global`` is not causal: its scores come from the whole text, later tokens included. The last r tokens include the current
one, so that r = 1 protects no other.

Source: arXiv:2309.17453, section 3.2 (streaming); arXiv:2306.14048, algorithm 1 (h2o; Departure: the attention that is summed is
that of the policy itself, renormalised over what it kept, for every sequence and every head of keys by itself).
Letters: g heads of keys and values, L places of the cache.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxdyn.errors import UsageError, is_traced, number, require, whole
from jaxdyn.sampling import wide

__all__ = ["KINDS", "SCORES", "Policy", "victim"]

KINDS = ("dense", "window", "streaming", "h2o", "anti_h2o", "random", "oracle_global")
SCORES = ("sum", "mean", "decay")
SCORED = ("h2o", "anti_h2o")
BLIND = ("dense", "window", "streaming")  # they do not look at attention
STATIC, TRACED = ("kind", "size", "positions", "score"), ("sinks", "recent", "decay")


@jax.tree_util.register_pytree_with_keys_class
@dataclasses.dataclass(frozen=True, kw_only=True)
class Policy:
    """A policy; ``sinks``, ``recent`` and ``decay`` may be traced. Traced values are not checked: they are used as they are.

    Args:
        kind: one of :data:`KINDS`.
        size: L, keys in the cache, the current one included.
        positions: "cache": a key's position is its number in the cache; "absolute": its number in the text.
        score: attention so far: summed, its mean over the queries since, or a sum in which every query counts ``decay`` times as
            much as the next one.
        sinks: S, first tokens that are kept.
        recent: r, last tokens that are kept, the current one included; L - r places are left for heavy hitters.
        decay: of the score "decay".
    """

    kind: str
    size: int
    positions: str = "cache"
    score: str = "sum"
    sinks: int | Int[Array, ""] = 0
    recent: int | Int[Array, ""] = 1
    decay: float | Float[Array, ""] = 0.9

    def __post_init__(self) -> None:
        for name, allowed in (("kind", KINDS), ("positions", ("cache", "absolute")), ("score", SCORES)):
            require(self, getattr(self, name) in allowed, f"{name} is one of {', '.join(allowed)}", name)
        size = whole("size", self.size, least=2)
        values = {
            "size": size,
            "sinks": whole("sinks", self.sinks, least=0, traced=True),
            "recent": whole("recent", self.recent, least=1, traced=True),
            "decay": number("decay", self.decay, least=0, most=1, traced=True),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if not is_traced(self.sinks):
            require(self, self.sinks < size, "sinks is at least 0 and below size", "sinks", "size")
        if not is_traced(self.recent):
            require(self, self.recent <= size, "recent is between 1 and size", "recent", "size")

    def tree_flatten_with_keys(self) -> tuple[tuple[tuple[Any, Any], ...], tuple[Any, ...]]:
        """The traced numbers are the children."""
        children = tuple((jax.tree_util.GetAttrKey(name), getattr(self, name)) for name in TRACED)
        return children, tuple(getattr(self, name) for name in STATIC)

    @classmethod
    def tree_unflatten(cls, static: tuple[Any, ...], children: Iterable[Any]) -> Policy:
        """The inverse, without any check: JAX puts placeholders, and policies of a batch, where numbers are."""
        policy = object.__new__(cls)
        for name, value in (*zip(STATIC, static, strict=True), *zip(TRACED, children, strict=True)):
            object.__setattr__(policy, name, value)
        return policy


def victim(
    policy: Policy,
    born: Int[Array, "rows L"],
    score: Float[Array, "g L"],
    time: Int[Array, ""],
    *,
    given: Float[Array, "g T"] | None = None,
    key: PRNGKeyArray | None = None,
) -> Int[Array, " rows"]:
    """The place in a full cache that the token of this time takes, for every head of keys, or in one row for all.

    Args:
        policy: the policy.
        born: when the token of each place came.
        score: attention that each place has had so far.
        time: of the current token.
        given: attention that each token of the text gets, for ``oracle_global``.
        key: for ``random``.

    Raises:
        UsageError: without the scores or the key that the policy needs.
    """
    if policy.kind in BLIND:
        kept = born < policy.sinks if policy.kind == "streaming" else jnp.zeros(born.shape, bool)
        return jnp.argmin(jnp.where(kept, jnp.iinfo(born.dtype).max, born), -1).astype(jnp.int32)
    age = time - born
    return jnp.argmin(jnp.where(age < policy.recent, jnp.inf, _worth(policy, born, score, age, given, key)), -1).astype(jnp.int32)


def _worth(
    policy: Policy,
    born: Int[Array, "g L"],
    score: Float[Array, "g L"],
    age: Int[Array, "g L"],
    given: Float[Array, "g T"] | None,
    key: PRNGKeyArray | None,
) -> Float[Array, "g L"]:
    """Score of each slot; the lowest is evicted."""
    if policy.kind == "random":
        if key is None:
            raise UsageError("the policy random needs a key")
        return jax.random.uniform(key, born.shape, wide(score.dtype))
    if policy.kind == "oracle_global":
        if given is None:
            raise UsageError("the policy oracle_global needs given=, the attention that each token gets in the whole text")
        return jnp.take_along_axis(given.astype(score.dtype), jnp.maximum(born, 0), -1)
    worth = score / jnp.maximum(age, 1).astype(score.dtype) if policy.score == "mean" else score
    return worth if policy.kind == "h2o" else -worth
