r"""Decoding a whole text with a cache whose policy and size are traced: one program for all policies and budgets.

Layer by layer, every query, key and value of the text is known; a scan over tokens then decides, head by head, which keys are kept,
from scores that are products of all queries with all keys. Positions are those in the text ("absolute"), so that a layer's output
is attention with the mask M of what was kept:

.. math:: b_{tj} = \frac{M_{tj} e^{s_{tj}}}{\sum_i M_{ti} e^{s_{ti}}}, \qquad F_j \leftarrow \gamma F_j + b_{tj}

The numbers are those of :func:`jaxdyn.nn.cache.losses` with the same policy (tested), whose size decides the program. Heads that
share keys share what is kept: F then sums over them.
Source: arXiv:2306.14048, algorithm 1; policies as in :mod:`jaxdyn.nn.cache.policy`.
Letters: h heads of e numbers, g heads of keys with r heads each, T tokens of V, L layers, p policies.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray, PyTree

from jaxdyn.errors import UsageError
from jaxdyn.nn import attention, choices
from jaxdyn.nn.config import Transformer
from jaxdyn.nn.transformer import blocks_of, embedded, expanded, heads, last, merged, near, read, turned

__all__ = ["POLICIES", "Eviction", "TracedPolicy", "decode", "policies", "received", "trunk"]

POLICIES = ("full", "recent", "random", "streaming", "sum", "mean", "decay", "anti", "oracle")


class TracedPolicy(NamedTuple):
    """A policy (its place in :data:`POLICIES`), the keys it may hold, and how many of them are the last ones or the first ones."""

    kind: Int[Array, "*p"]
    size: Int[Array, "*p"]
    recent: Int[Array, "*p"]
    sinks: Int[Array, "*p"]


class Eviction(NamedTuple):
    """What a policy does to one layer's heads, at every query.

    ``lost`` is the weight that full attention gives to the keys that are gone, ``error`` the size of the change of the output and
    ``bound`` twice ``lost`` times the largest value.
    """

    kept: Bool[Array, "layers g T T"]
    lost: Float[Array, "layers h T"]
    error: Float[Array, "layers h T"]
    bound: Float[Array, "layers h T"]


def policies(budgets: tuple[float, ...], length: int) -> TracedPolicy:
    """All policies with all budgets (shares of the length), [policy, budget]: half of a cache is for the last keys.

    A streaming cache holds the first tokens in up to 4 of its places, half of them at most. "full" holds everything.
    """
    kind = jnp.arange(len(POLICIES), dtype=jnp.int32)[:, None]
    size = jnp.maximum(2, jnp.round(jnp.asarray(budgets) * length)).astype(jnp.int32)[None]
    kind, size = jnp.broadcast_arrays(kind, size)
    size = jnp.where(kind == POLICIES.index("full"), length, size)
    return TracedPolicy(kind, size, size // 2, jnp.minimum(4, size // 2))


def received(b: Float[Array, "*b T T"]) -> Float[Array, "*b T"]:
    """Attention that each token gets from all queries; not causal."""
    return jnp.sum(b, -2)


def attend(
    policy: TracedPolicy,
    scores: Float[Array, "g r T T"],
    given: Float[Array, "g T"],
    luck: Float[Array, "T g T"],
    decay: float,
    window: int | None = None,
) -> tuple[Float[Array, "g r T T"], Bool[Array, "g T T"]]:
    """Attention weights under a policy, and which keys each query still had."""
    count = scores.shape[-1]
    at = jnp.arange(count, dtype=jnp.int32)
    gamma = jnp.where(policy.kind == POLICIES.index("decay"), decay, 1.0).astype(scores.dtype)

    def step(state: tuple[Array, Array], now: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        kept, total = state
        t, row, noise = now
        # score of each slot by each policy; the lowest is evicted
        age = jnp.broadcast_to(t - at, total.shape)
        old = jnp.broadcast_to(at, total.shape).astype(total.dtype)
        first = jnp.where(old < policy.sinks, jnp.finfo(total.dtype).max, old)
        mean = total / jnp.maximum(age, 1).astype(total.dtype)
        worth = jax.lax.select_n(policy.kind, old, old, noise, first, total, mean, total, -total, given)
        guarded = (age < policy.recent) & (policy.kind >= POLICIES.index("random")) & (policy.kind != POLICIES.index("streaming"))
        victim = jnp.argmin(jnp.where(kept, jnp.where(guarded, jnp.finfo(worth.dtype).max, worth), jnp.inf), -1)
        gone = (t >= policy.size) & (at == victim[:, None])
        kept = (kept & ~gone) | (at == t)
        # attention to what is left
        visible = kept if window is None else kept & (t - at < window)
        b = attention.weights(row, "softmax", visible[:, None])
        return (kept, gamma * total + jnp.sum(b, 1)), (b, kept)

    start = (jnp.zeros(given.shape, bool), jnp.zeros(given.shape, scores.dtype))
    _, (b, kept) = jax.lax.scan(step, start, (at, jnp.moveaxis(scores, 2, 0), luck))
    return jnp.moveaxis(b, 0, 2), jnp.moveaxis(kept, 0, 1)


def decode(
    shape: Transformer,
    params: PyTree,
    policy: TracedPolicy,
    tokens: Integer[Array, " T"],
    given: Float[Array, "layers g T"],
    key: PRNGKeyArray,
    decay: float = 0.9,
) -> tuple[Float[Array, "T V"], Eviction]:
    """Logits after each token under one policy, and what it does to attention.

    Args:
        shape: of the network, with softmax attention and without a sink token.
        params: its weights.
        policy: one policy with one size.
        tokens: the text.
        given: attention that each token gets in the whole text, for "oracle".
        key: of "random".
        decay: a query's weight over the next one's, for "decay".

    Raises:
        UsageError: for another form of attention, and for a network with a sink token.
    """
    x, seen = trunk(shape, params, policy, tokens, given, key, decay)
    return read(shape, params, x), seen


def trunk(
    shape: Transformer,
    params: PyTree,
    policy: TracedPolicy,
    tokens: Integer[Array, " T"],
    given: Float[Array, "layers g T"],
    key: PRNGKeyArray,
    decay: float = 0.9,
) -> tuple[Float[Array, "T d"], Eviction]:
    """As :func:`decode`, with the last residual stream after its norm instead of logits."""
    if choices.names(shape.attention) != ("softmax",) or shape.sink_token or not (shape.causal and shape.sees_itself):
        raise UsageError("policies in one program serve causal networks with softmax attention and without a sink token")
    # scores of all queries with all keys, layer by layer
    at = jnp.arange(tokens.shape[0], dtype=jnp.int32)
    dense_mask = near(shape, attention.causal_mask(at.size), at[:, None] - at)
    x = embedded(shape, params, tokens, at)
    groups, each = shape.key_heads, shape.heads // shape.key_heads
    wide = jnp.promote_types(x.dtype, jnp.float32)
    luck = jax.random.uniform(key, (shape.depth, at.size, groups, at.size), wide)
    bias = attention.alibi(at, at, shape.heads, shape.dtype).reshape(groups, each, at.size, at.size)

    def one(x: Array, part: tuple[dict[str, Array], Array, Array]) -> tuple[Array, Eviction]:
        w, scores_given, noise = part
        q, k, v = heads(shape, x, w)
        q, k = turned(shape, q).reshape(at.size, groups, each, -1), turned(shape, k)
        scores = jnp.einsum("ngre,mge->grnm", q, k, preferred_element_type=wide) * q.shape[-1] ** -0.5
        scores = scores + bias if shape.position == "alibi" else scores
        b, kept = attend(policy, scores, scores_given.astype(wide), noise, decay, shape.window)
        # next to attention to the whole text
        dense = attention.weights(scores, "softmax", dense_mask)
        out, whole = (jnp.einsum("grnm,mgf->ngrf", weights, v.astype(wide)) for weights in (b, dense))
        lost = jnp.maximum(1 - jnp.sum(jnp.where(kept[:, None], dense, 0), -1), 0)
        largest = jax.lax.cummax(jnp.linalg.norm(v.astype(wide), axis=-1), axis=0).T[:, None]  # [g, 1, T]
        error = jnp.moveaxis(jnp.linalg.norm(whole - out, axis=-1), 0, -1)
        lost, error, bound = (y.reshape(shape.heads, -1) for y in (lost, error, 2 * lost * largest))
        return merged(shape, x, out.reshape(at.size, shape.heads, -1).astype(x.dtype), w), Eviction(kept, lost, error, bound)

    x, seen = jax.lax.scan(one, x, (expanded(shape, blocks_of(shape, params)), given, luck))
    return last(shape, params, x), seen
