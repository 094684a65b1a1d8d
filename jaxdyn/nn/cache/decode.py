"""Decoding token by token: one program for a text of any length, in memory that does not depend on it.

All functions serve one stream; ``jax.vmap`` makes many, each with its own cache.
Letters: T tokens, V tokens of the vocabulary, L layers, g heads of keys and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxdyn.errors import UsageError
from jaxdyn.nn.cache.policy import Policy
from jaxdyn.nn.cache.state import Layer, State, attend, start
from jaxdyn.nn.decoder import Decoder, embedded, heads, merged, read, rms_norm

__all__ = ["decode", "losses", "step"]


def step(
    shape: Decoder,
    params: PyTree,
    policy: Policy,
    state: State,
    token: Int[Array, ""],
    *,
    given: Float[Array, "layers g T"] | None = None,
    key: PRNGKeyArray | None = None,
) -> tuple[State, Float[Array, " V"]]:
    """The cache with one token more, and the logits of the next one.

    A learned position is the token's number in the cache when it comes (or in the text): later, its keys cannot change it.

    Args:
        shape: of the network.
        params: its weights.
        policy: which keys are kept.
        state: the cache.
        token: the current token.
        given: for ``oracle_global``, the attention that each token gets (:func:`jaxdyn.nn.cache.global_scores`).
        key: of the stream, for ``random``.
    """
    time = state.time
    at = jnp.minimum(time, policy.size - 1) if policy.positions == "cache" else time
    x = embedded(shape, params, token[None], at[None])[0]
    now = None if key is None else jax.random.fold_in(key, time)

    def one(x: Array, part: tuple[Any, Layer, Array, Array | None]) -> tuple[Array, Layer]:
        w, layer, number, scores = part
        if shape.repeats > 1:  # a block is read where it is used: copies of all weights for every token would cost more
            w = jax.tree.map(lambda every: every[w], params["blocks"])
        q, k, v = heads(shape, x, w)
        random = None if now is None else jax.random.fold_in(now, number)
        out, layer = attend(shape, policy, layer, time, q, k, v, sink=w.get("sink"), given=scores, random=random)
        return merged(shape, x, out, w), layer

    numbers = jnp.arange(shape.depth, dtype=jnp.int32)
    blocks = params["blocks"] if shape.repeats == 1 else jnp.asarray(shape.walk, jnp.int32)
    x, layers = jax.lax.scan(one, x, (blocks, state.layers, numbers, given))
    return State(layers, time + 1), read(shape, params, rms_norm(x, params["norm"], shape.epsilon))


def decode(
    shape: Decoder,
    params: PyTree,
    policy: Policy,
    tokens: Int[Array, " T"],
    *,
    given: Float[Array, "layers g T"] | None = None,
    key: PRNGKeyArray | None = None,
) -> tuple[State, Float[Array, "T V"]]:
    """The cache after a text, and the logits after each of its tokens. Arguments as of :func:`step`."""
    return _scan(shape, params, policy, tokens, lambda logits, _: logits, tokens, given, key)


def losses(
    shape: Decoder,
    params: PyTree,
    policy: Policy,
    tokens: Int[Array, " T1"],
    *,
    given: Float[Array, "layers g T"] | None = None,
    key: PRNGKeyArray | None = None,
) -> tuple[State, Float[Array, " T"]]:
    """The cache after all tokens but the last, and each next token's cross-entropy in nats; holds the current logits alone."""

    def nats(logits: Float[Array, " V"], target: Int[Array, ""]) -> Float[Array, ""]:
        return -jax.nn.log_softmax(logits.astype(jnp.promote_types(logits.dtype, jnp.float32)))[target]

    return _scan(shape, params, policy, tokens[:-1], nats, tokens[1:], given, key)


def _scan(
    shape: Decoder,
    params: PyTree,
    policy: Policy,
    tokens: Int[Array, " T"],
    reading: Callable[..., Any],
    targets: Int[Array, " T"],
    given: Array | None,
    key: PRNGKeyArray | None,
) -> tuple[State, Any]:
    count = tokens.shape[0]
    if policy.kind == "dense" and count > policy.size:
        raise UsageError(f"size={policy.size} is not allowed: a dense cache has a place for each of {count} tokens")
    reach = count if policy.positions == "absolute" else min(count, policy.size)
    if shape.position == "learned" and reach > shape.length:
        raise UsageError(f"this network has learned {shape.length} positions (length), the policy uses {reach}")

    def one(state: State, pair: tuple[Array, Array]) -> tuple[State, Any]:
        state, logits = step(shape, params, policy, state, pair[0], given=given, key=key)
        return state, reading(logits, pair[1])

    return jax.lax.scan(one, start(shape, policy), (tokens, targets))
