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
from jaxdyn.nn.cache.policy import BLIND, Policy
from jaxdyn.nn.cache.state import Layer, Plan, State, attend, planned, start
from jaxdyn.nn.decoder import Decoder, embedded, heads, merged, read, rms_norm, with_sink

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

    A learned position is the token's number in the cache when it comes (or in the text): later, its keys cannot change it. The sink
    token of a network that has one comes first, as token number ``shape.vocabulary``; a policy keeps it or not, as any first token.

    Args:
        shape: of the network.
        params: its weights.
        policy: which keys are kept.
        state: the cache.
        token: the current token.
        given: for ``oracle_global``, the attention that each token gets (:func:`jaxdyn.nn.cache.global_scores`).
        key: of the stream, for ``random``.
    """
    if not shape.scan:
        blocks, layers = _blocks(shape, params), _apart(state.layers)
        layers, logits = _written(shape, params, blocks, policy, layers, state.time, token, given, key)
        return State(_together(layers), state.time + 1), logits
    x, now, plan = _enter(shape, params, policy, jax.tree.map(lambda x: x[0], state.layers), state.time, token, key)

    def one(x: Array, part: tuple[Any, Layer, Array, Array | None]) -> tuple[Array, Layer]:
        w, layer, number, scores = part
        if shape.repeats > 1:  # a block is read where it is used: copies of all weights for every token would cost more
            w = jax.tree.map(lambda every: every[w], params["blocks"])
        return _through(shape, policy, plan, state.time, now, x, w, layer, number, scores)

    numbers = jnp.arange(shape.depth, dtype=jnp.int32)
    blocks = params["blocks"] if shape.repeats == 1 else jnp.asarray(shape.walk, jnp.int32)
    x, layers = jax.lax.scan(one, x, (blocks, state.layers, numbers, given))
    return State(layers, state.time + 1), _read(shape, params, x)


def _enter(
    shape: Decoder, params: PyTree, policy: Policy, first: Layer, time: Array, token: Array, key: PRNGKeyArray | None
) -> tuple[Array, PRNGKeyArray | None, Plan | None]:
    """The token's residual stream, its random key, and the plan if all layers have one."""
    at = jnp.minimum(time, policy.size - 1) if policy.positions == "cache" else time
    now = None if key is None else jax.random.fold_in(key, time)
    plan = planned(shape, policy, first, time) if policy.kind in BLIND else None
    return embedded(shape, params, token[None], at[None])[0], now, plan


def _through(
    shape: Decoder,
    policy: Policy,
    plan: Plan | None,
    time: Array,
    now: PRNGKeyArray | None,
    x: Array,
    w: dict[str, Array],
    layer: Layer,
    number: int | Array,
    given: Array | None,
) -> tuple[Array, Layer]:
    """The residual stream after one block, and its cache."""
    q, k, v = heads(shape, x, w)
    random = None if now is None else jax.random.fold_in(now, number)
    out, layer = attend(shape, policy, layer, time, q, k, v, plan=plan, sink=w.get("sink"), given=given, random=random)
    return merged(shape, x, out, w), layer


def _written(
    shape: Decoder,
    params: PyTree,
    blocks: tuple[dict[str, Array], ...],
    policy: Policy,
    layers: tuple[Layer, ...],
    time: Array,
    token: Array,
    given: Array | None,
    key: PRNGKeyArray | None,
) -> tuple[tuple[Layer, ...], Array]:
    """All layers written out, each with its weights and its cache: nothing is copied, and caches are changed in place."""
    x, now, plan = _enter(shape, params, policy, layers[0], time, token, key)
    new = []
    scores = (None,) * shape.depth if given is None else tuple(given)
    for number, (block, layer, score) in enumerate(zip(shape.walk, layers, scores, strict=True)):
        x, layer = _through(shape, policy, plan, time, now, x, blocks[block], layer, number, score)
        new.append(layer)
    return tuple(new), _read(shape, params, x)


def _read(shape: Decoder, params: PyTree, x: Float[Array, " d"]) -> Float[Array, " V"]:
    return read(shape, params, rms_norm(x, params["norm"], shape.epsilon))


def _blocks(shape: Decoder, params: PyTree) -> tuple[dict[str, Array], ...]:
    """The weights of each block."""
    return tuple(jax.tree.map(lambda w, i=i: w[i], params["blocks"]) for i in range(shape.layers))


def _apart(layers: Layer) -> tuple[Layer, ...]:
    return tuple(jax.tree.map(lambda x, i=i: x[i], layers) for i in range(layers.key.shape[0]))


def _together(layers: tuple[Layer, ...]) -> Layer:
    return jax.tree.map(lambda *x: jnp.stack(x), *layers)


def decode(
    shape: Decoder,
    params: PyTree,
    policy: Policy,
    tokens: Int[Array, " T"],
    *,
    state: State | None = None,
    given: Float[Array, "layers g T"] | None = None,
    key: PRNGKeyArray | None = None,
) -> tuple[State, Float[Array, "T V"]]:
    """The cache after a text, and the logits after each of its tokens.

    ``state`` is the cache after what came before the text: nothing by default, and then the sink token of a network that has one is
    read first (``given`` has it, too). Other arguments are as of :func:`step`.
    """
    return _scan(shape, params, policy, tokens, lambda logits, _: logits, tokens, state, given, key)


def losses(
    shape: Decoder,
    params: PyTree,
    policy: Policy,
    tokens: Int[Array, " T1"],
    *,
    state: State | None = None,
    given: Float[Array, "layers g T"] | None = None,
    key: PRNGKeyArray | None = None,
) -> tuple[State, Float[Array, " T"]]:
    """The cache after all tokens but the last, and each next token's cross-entropy in nats; holds the current logits alone."""

    def nats(logits: Float[Array, " V"], target: Int[Array, ""]) -> Float[Array, ""]:
        return -jax.nn.log_softmax(logits.astype(jnp.promote_types(logits.dtype, jnp.float32)))[target]

    return _scan(shape, params, policy, tokens[:-1], nats, tokens[1:], state, given, key)


def _scan(
    shape: Decoder,
    params: PyTree,
    policy: Policy,
    tokens: Int[Array, " T"],
    reading: Callable[..., Any],
    targets: Int[Array, " T"],
    state: State | None,
    given: Array | None,
    key: PRNGKeyArray | None,
) -> tuple[State, Any]:
    inputs = with_sink(shape, tokens) if state is None else tokens
    skipped, count = inputs.size - tokens.size, inputs.size
    if policy.kind == "dense" and count > policy.size:
        raise UsageError(f"size={policy.size} is not allowed: a dense cache has a place for each of {count} tokens")
    reach = count if policy.positions == "absolute" else min(count, policy.size)
    if shape.position == "learned" and reach > shape.length:
        raise UsageError(f"this network has learned {shape.length} positions (length), the policy uses {reach}")

    expected = jnp.concatenate([targets[:skipped], targets])
    first = start(shape, policy) if state is None else state
    if shape.scan:

        def one(state: State, pair: tuple[Array, Array]) -> tuple[State, Any]:
            state, logits = step(shape, params, policy, state, pair[0], given=given, key=key)
            return state, reading(logits, pair[1])

        state, out = jax.lax.scan(one, first, (inputs, expected))
        return state, out[skipped:]

    blocks = _blocks(shape, params)  # cut here, not for every token

    def other(carry: tuple[tuple[Layer, ...], Array], pair: tuple[Array, Array]) -> tuple[tuple[tuple[Layer, ...], Array], Any]:
        layers, time = carry
        layers, logits = _written(shape, params, blocks, policy, layers, time, pair[0], given, key)
        return (layers, time + 1), reading(logits, pair[1])

    (layers, time), out = jax.lax.scan(other, (_apart(first.layers), first.time), (inputs, expected))
    return State(_together(layers), time), out[skipped:]
