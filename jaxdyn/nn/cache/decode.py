"""Decoding token by token: one program for a text of any length, in memory that does not depend on it.

All functions serve one stream; ``jax.vmap`` makes many, each with its own cache. A text in parts gives what it gives at once: the
state knows how many tokens it has had. What does not fit (a dense cache that is full, learned positions and ``given`` that end) is
refused where that number is known; where it is traced, the residual stream of such a token is NaN, and so are all logits from there
on.
Letters: T tokens, V tokens of the vocabulary, L layers, g heads of keys and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, PRNGKeyArray, PyTree

from jaxdyn.errors import UsageError, is_traced, shown
from jaxdyn.nn.cache.policy import BLIND, Policy
from jaxdyn.nn.cache.state import Layer, Placement, State, attend, fits, fitting, placed, speaks, start
from jaxdyn.nn.config import Transformer
from jaxdyn.nn.tokens import checked
from jaxdyn.nn.transformer import blocks_of, embedded, heads, last, merged, read, with_sink

__all__ = ["decode", "losses", "step"]

LONGEST = 2**31 - 1  # tokens of a stream


def step(
    shape: Transformer,
    params: PyTree,
    policy: Policy,
    state: State,
    token: Integer[Array, ""],
    *,
    given: Float[Array, "layers g whole"] | None = None,
    key: PRNGKeyArray | None = None,
) -> tuple[State, Float[Array, " V"]]:
    """The cache with one token more, and the logits of the next one.

    A learned position is the token's number in the cache when it comes (or in the text): later, its keys cannot change it. The sink
    token of a network that has one comes first, as token number ``shape.vocabulary``, and never again; a policy keeps it or not, as
    any first token. Of a traced token only dtype and shape are checked (:mod:`jaxdyn.nn.tokens`).

    Args:
        shape: of the network.
        params: its weights.
        policy: which keys are kept.
        state: the cache, of this network and this policy.
        token: the current token.
        given: for ``oracle_global``, the attention that each token gets (:func:`jaxdyn.nn.cache.global_scores`).
        key: of the stream, for ``random``.

    Raises:
        UsageError: for a known token outside the vocabulary, a state of another network or policy, a known state that is full, and
            ``given`` of another shape or for another policy.
    """
    state, had = fitting(shape, policy, state), _had(state)
    token = checked(token, shape.vocabulary + shape.sink_token, name="token", axes=0)
    _refuse_misplaced_sink(shape, token, had)
    _refuse_long(shape, policy, given, (had or 0) + 1)
    limit = _limit(shape, policy, given) if had is None else None
    if not shape.scan:
        blocks, layers = _blocks(shape, params), _apart(state.layers)
        layers, logits = _written(shape, params, blocks, policy, layers, state.time, token, given, key, limit)
        return state._replace(layers=_together(layers), time=state.time + 1), logits
    return _looped(shape, params, policy, state, token, given, key, limit)


def _looped(
    shape: Transformer,
    params: PyTree,
    policy: Policy,
    state: State,
    token: Array,
    given: Array | None,
    key: PRNGKeyArray | None,
    limit: int | None,
) -> tuple[State, Array]:
    """All layers as a loop."""
    blocks, first = blocks_of(shape, params), jax.tree.map(lambda x: x[0], state.layers)
    x, now, placement = _enter(shape, params, policy, first, state.time, token, key, limit)

    def one(x: Array, part: tuple[Any, Layer, Array, Array | None]) -> tuple[Array, Layer]:
        w, layer, number, scores = part
        if shape.repeats > 1:  # a block is read where it is used: copies of all weights for every token would cost more
            w = jax.tree.map(lambda every: every[w], blocks)
        return _through(shape, policy, placement, state.time, now, x, w, layer, number, scores)

    numbers = jnp.arange(shape.depth, dtype=jnp.int32)
    used = blocks if shape.repeats == 1 else jnp.asarray(shape.walk, jnp.int32)
    x, layers = jax.lax.scan(one, x, (used, state.layers, numbers, given))
    return state._replace(layers=layers, time=state.time + 1), _read(shape, params, x)


def _enter(
    shape: Transformer,
    params: PyTree,
    policy: Policy,
    first: Layer,
    time: Array,
    token: Array,
    key: PRNGKeyArray | None,
    limit: int | None,
) -> tuple[Array, PRNGKeyArray | None, Placement | None]:
    """The token's residual stream, its random key, and the placement if all layers have one."""
    at = jnp.minimum(time, policy.size - 1) if policy.positions == "cache" else time
    now = None if key is None else jax.random.fold_in(key, time)
    placement = placed(shape, policy, first, time) if policy.kind in BLIND else None
    x = embedded(shape, params, token[None], at[None])[0]
    return x if limit is None else jnp.where(time < limit, x, jnp.nan), now, placement


def _through(
    shape: Transformer,
    policy: Policy,
    placement: Placement | None,
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
    out, layer = attend(shape, policy, layer, time, q, k, v, placement=placement, sink=w.get("sink"), given=given, random=random)
    return merged(shape, x, out, w), layer


def _written(
    shape: Transformer,
    params: PyTree,
    blocks: tuple[dict[str, Array], ...],
    policy: Policy,
    layers: tuple[Layer, ...],
    time: Array,
    token: Array,
    given: Array | None,
    key: PRNGKeyArray | None,
    limit: int | None,
) -> tuple[tuple[Layer, ...], Array]:
    """All layers written out, each with its weights and its cache: nothing is copied, and caches are changed in place."""
    x, now, placement = _enter(shape, params, policy, layers[0], time, token, key, limit)
    new = []
    scores = (None,) * shape.depth if given is None else tuple(given)
    for number, (block, layer, score) in enumerate(zip(shape.walk, layers, scores, strict=True)):
        x, layer = _through(shape, policy, placement, time, now, x, blocks[block], layer, number, score)
        new.append(layer)
    return tuple(new), _read(shape, params, x)


def _read(shape: Transformer, params: PyTree, x: Float[Array, " d"]) -> Float[Array, " V"]:
    return read(shape, params, last(shape, params, x))


def _blocks(shape: Transformer, params: PyTree) -> tuple[dict[str, Array], ...]:
    """The weights of each block."""
    return tuple(jax.tree.map(lambda w, i=i: w[i], blocks_of(shape, params)) for i in range(shape.layers))


def _apart(layers: Layer) -> tuple[Layer, ...]:
    return tuple(jax.tree.map(lambda x, i=i: x[i], layers) for i in range(layers.key.shape[0]))


def _together(layers: tuple[Layer, ...]) -> Layer:
    return jax.tree.map(lambda *x: jnp.stack(x), *layers)


def decode(
    shape: Transformer,
    params: PyTree,
    policy: Policy,
    tokens: Integer[Array, " T"],
    *,
    state: State | None = None,
    given: Float[Array, "layers g whole"] | None = None,
    key: PRNGKeyArray | None = None,
) -> tuple[State, Float[Array, "T V"]]:
    """The cache after a text, and the logits after each of its tokens.

    ``state`` is the cache after what came before the text, nothing by default; the sink token of a network that has one is read
    before the first token of all (``given`` has it, too). ``given`` is that of the whole text in all of its parts. Other arguments
    are as of :func:`step`.

    Raises:
        UsageError: as of :func:`step`, and for a text without a token.
    """
    tokens = checked(tokens, shape.vocabulary, axes=1, least=1)
    return _scan(shape, params, policy, tokens, lambda logits, _: logits, tokens, state, given, key)


def losses(
    shape: Transformer,
    params: PyTree,
    policy: Policy,
    tokens: Integer[Array, " T1"],
    *,
    state: State | None = None,
    given: Float[Array, "layers g whole"] | None = None,
    key: PRNGKeyArray | None = None,
) -> tuple[State, Float[Array, " T"]]:
    """The cache after all tokens but the last, and each next token's cross-entropy in nats; holds the current logits alone.

    A text in parts overlaps by one token: the last of a part is the first of the next one, with the part's state.

    Raises:
        UsageError: as of :func:`decode`, and for a text of one token.
    """
    speaks(shape)
    tokens = checked(tokens, shape.vocabulary, axes=1, least=2)

    def nats(logits: Float[Array, " V"], target: Int[Array, ""]) -> Float[Array, ""]:
        return -jax.nn.log_softmax(logits.astype(jnp.promote_types(logits.dtype, jnp.float32)))[target]

    return _scan(shape, params, policy, tokens[:-1], nats, tokens[1:], state, given, key)


def _scan(
    shape: Transformer,
    params: PyTree,
    policy: Policy,
    tokens: Integer[Array, " T"],
    reading: Callable[..., Any],
    targets: Int[Array, " T"],
    state: State | None,
    given: Array | None,
    key: PRNGKeyArray | None,
) -> tuple[State, Any]:
    first = start(shape, policy) if state is None else fitting(shape, policy, state)
    had = 0 if state is None else _had(state)
    inputs = with_sink(shape, tokens) if had == 0 else tokens
    skipped = inputs.size - tokens.size
    _refuse_long(shape, policy, given, (had or 0) + inputs.size)
    limit = _limit(shape, policy, given) if had is None else None
    if had is None and shape.sink_token:  # whether it was read is known when the program runs
        first = jax.lax.cond(first.time == 0, lambda s: _sunk(shape, params, policy, s, given, key, limit), lambda s: s, first)
    expected = jnp.concatenate([targets[:skipped], targets])
    if shape.scan:

        def one(state: State, pair: tuple[Array, Array]) -> tuple[State, Any]:
            state, logits = _looped(shape, params, policy, state, pair[0], given, key, limit)
            return state, reading(logits, pair[1])

        last, out = jax.lax.scan(one, first, (inputs, expected))
        return last, out[skipped:]

    blocks = _blocks(shape, params)  # cut here, not for every token

    def other(carry: tuple[tuple[Layer, ...], Array], pair: tuple[Array, Array]) -> tuple[tuple[tuple[Layer, ...], Array], Any]:
        layers, time = carry
        layers, logits = _written(shape, params, blocks, policy, layers, time, pair[0], given, key, limit)
        return (layers, time + 1), reading(logits, pair[1])

    (layers, time), out = jax.lax.scan(other, (_apart(first.layers), first.time), (inputs, expected))
    return first._replace(layers=_together(layers), time=time), out[skipped:]


def _sunk(
    shape: Transformer,
    params: PyTree,
    policy: Policy,
    state: State,
    given: Array | None,
    key: PRNGKeyArray | None,
    limit: int | None,
) -> State:
    """The cache after the sink token."""
    return _looped(shape, params, policy, state, jnp.asarray(shape.vocabulary, jnp.int32), given, key, limit)[0]


def _had(state: State) -> int | None:
    """How many tokens a state has had; None if that is traced."""
    return None if is_traced(state.time) else int(state.time)


def _limit(shape: Transformer, policy: Policy, given: Array | None) -> int | None:
    """How many tokens a stream may have in all; None: as many as are counted."""
    ends = [policy.size] if policy.kind == "dense" else []
    if shape.position == "learned" and (policy.positions == "absolute" or policy.size > shape.length):
        ends.append(shape.length)
    return min(ends + ([] if given is None else [given.shape[-1]]), default=None)


def _refuse_long(shape: Transformer, policy: Policy, given: Array | None, count: int) -> None:
    """Refuse more tokens than there is room for, and ``given`` that is of no use."""
    fits(shape, policy, count)
    if count > LONGEST:
        raise UsageError(f"a stream of {count} tokens is not allowed: they are counted in 32 bits")
    if given is None:
        return
    if policy.kind != "oracle_global":
        raise UsageError(f"given= is not allowed with kind={policy.kind!r}: it is for oracle_global")
    if jnp.ndim(given) != 3 or given.shape[:2] != (shape.depth, shape.key_heads) or given.shape[2] < count:
        needed = f"[{shape.depth},{shape.key_heads},{count}]"
        raise UsageError(f"given={shown(given)} is not allowed: it has the shape {needed}, or more tokens, all from the first on")


def _refuse_misplaced_sink(shape: Transformer, token: Array, had: int | None) -> None:
    """Refuse a text that does not begin with the sink token, or has it again."""
    if shape.sink_token and had is not None and not is_traced(token) and (had == 0) != (int(token) == shape.vocabulary):
        first = f"the sink token, number {shape.vocabulary}, is the first token of a stream and no other"
        raise UsageError(f"token={int(token)} is not allowed after {had} tokens: {first}")
