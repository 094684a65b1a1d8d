r"""Continuous thoughts: the last hidden state of a decoder is its next input, and so on, without a token in between.

.. math:: x_{n+1} = N h_n, \qquad h = \text{blocks}(x_1, \dots, x_n)

with N the last norm. The prompt is read once, but for its last token, which is the first input of the loop; each input reads the
cache of keys and values of all that came before. A learned position is added to a thought as to any input. What is fed back may be
something else (``feed``): a pause token, the embedding of the likeliest token, a thought of another example. What is only asked
after some inputs, and then forgotten, takes one pass for all of them (:func:`aside`).

Layers are written out. Heads come before places in what is remembered, so that no loop turns it round again in each of its steps.
Source: arXiv:2412.06769, section 3 (the decoding); arXiv:2505.12514, section 2.
Letters: b prompts of n tokens, c thoughts, d width, h heads of e numbers, k heads of keys and values, m places.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, PyTree

from jaxdyn import errors
from jaxdyn.errors import UsageError, is_traced, shown
from jaxdyn.nn import attention
from jaxdyn.nn.config import Transformer
from jaxdyn.nn.tokens import checked
from jaxdyn.nn.transformer import blocks_of, embedded, heads, last, merged, near, placed, turned, with_sink, without_sink

__all__ = ["Feed", "Memory", "aside", "entered", "fits", "forward", "remember", "room", "step", "think", "whole"]

Feed = Callable[[Float[Array, "b d"], Int[Array, ""]], Float[Array, "b d"]]


class Memory(NamedTuple):
    """Keys (with their positions) and values of one layer."""

    key: Float[Array, "*b k m e"]
    value: Float[Array, "*b k m e"]


def forward(shape: Transformer, params: PyTree, x: Float[Array, "*b n d"]) -> Float[Array, "*b n d"]:
    """Hidden states after the last norm for a whole sequence of inputs, positions included, in one causal pass without a cache."""
    at = jnp.arange(x.shape[-2], dtype=jnp.int32)
    for w in _blocks(shape, params):
        query, own = _read(shape, w, x, at)
        x = _block(shape, w, x, query, at, [own], at)
    return last(shape, params, x)


def remember(shape: Transformer, params: PyTree, x: Float[Array, "*b n d"]) -> list[Memory]:
    """What every layer remembers of the first inputs of a sequence, given without positions; the last layer ends there.

    Raises:
        UsageError: if there are more inputs than learned positions.
    """
    fits(shape, x.shape[-2])
    if x.shape[-2] == 0:
        nothing = jnp.zeros((*x.shape[:-2], shape.key_heads, 0, shape.entries), x.dtype)
        return [Memory(nothing, nothing)] * shape.depth
    at, past = jnp.arange(x.shape[-2], dtype=jnp.int32), []
    x = _positioned(shape, params, x, at)
    for number, w in enumerate(_blocks(shape, params), 1):
        query, own = _read(shape, w, x, at)
        past.append(own)
        if number < shape.depth:
            x = _block(shape, w, x, query, at, [own], at)
    return past


def room(past: list[Memory], places: int) -> list[Memory]:
    """Empty places for what follows the prompt, one or more."""
    places = errors.whole("places", places, least=1)
    return jax.tree.map(lambda old: jnp.zeros((*old.shape[:-2], places, old.shape[-1]), old.dtype), past)


def step(
    shape: Transformer,
    params: PyTree,
    past: list[Memory],
    recent: list[Memory],
    x: Float[Array, "*b n d"],
    slot: Int[Array, ""] | int,
) -> tuple[Float[Array, "*b n d"], list[Memory]]:
    """Hidden states for n inputs that follow one another, and the memory with them.

    Inputs in parts give what they give at once. A traced slot is not checked: inputs without places of their own overwrite others
    (``checkify.index_checks`` of ``jax.experimental`` finds them when the program runs).

    Args:
        shape: of the network.
        params: its weights.
        past: what is remembered of the prompt; it does not change.
        recent: what is remembered of the places after it, from :func:`room`.
        x: embeddings or thoughts, without positions.
        slot: number of the first one's place after the prompt; what stood there and in the next ones is overwritten, and the places
            before it have been filled.

    Raises:
        UsageError: if the inputs have no places or no learned positions, and for a memory of another network.
    """
    length, places, count = _length(shape, past), _length(shape, recent), x.shape[-2]
    if count > places:
        raise UsageError(f"x={shown(x)} is not allowed: there are {places} places after the prompt")
    place = errors.whole("slot", slot, least=0, most=places - count, traced=True)
    fits(shape, length + count + (0 if is_traced(place) else place))
    at = length + place + jnp.arange(count, dtype=jnp.int32)
    keys = jnp.arange(length + places, dtype=jnp.int32)
    x = _positioned(shape, params, x, at)
    after = []
    for w, old, memory in zip(_blocks(shape, params), past, recent, strict=True):
        query, own = _read(shape, w, x, at)
        grown = jax.tree.map(lambda to, new: jax.lax.dynamic_update_slice_in_dim(to, new, place, to.ndim - 2), memory, own)
        x = _block(shape, w, x, query, at, [old, grown], keys)
        after.append(grown)
    return last(shape, params, x), after


def aside(
    shape: Transformer, params: PyTree, past: list[Memory], recent: list[Memory], x: Float[Array, "*b c d"]
) -> Float[Array, "*b c d"]:
    """Hidden states for inputs that are asked aside: number i, from 0, comes after i + 1 inputs that followed the prompt.

    It stands in the place of the next one and is forgotten: neither the others nor what follows see it.

    Args:
        shape: of the network.
        params: its weights.
        past: what is remembered of the prompt.
        recent: what is remembered of the c places after it, as :func:`step` left it.
        x: embeddings, without positions.

    Raises:
        UsageError: unless there is an input for every place, for too few learned positions, and for a memory of another network.
    """
    length, count = _length(shape, past), x.shape[-2]
    if _length(shape, recent) != count:
        raise UsageError(
            f"x={shown(x)} is not allowed: it has one input for each of {_length(shape, recent)} places after the prompt"
        )
    fits(shape, length + count + 1)
    number = jnp.arange(count, dtype=jnp.int32)
    at = length + 1 + number
    keys = jnp.concatenate([jnp.arange(length, dtype=jnp.int32), length + number, at])
    seen = jnp.concatenate([jnp.ones((count, length), bool), jnp.tri(count, dtype=bool), jnp.eye(count, dtype=bool)], -1)
    x = _positioned(shape, params, x, at)
    for w, old, memory in zip(_blocks(shape, params), past, recent, strict=True):
        query, own = _read(shape, w, x, at)
        x = _block(shape, w, x, query, at, [old, memory, own], keys, seen)
    return last(shape, params, x)


def think(
    shape: Transformer, params: PyTree, tokens: Integer[Array, "*b n"], count: int, *, feed: Feed = lambda hidden, _: hidden
) -> Float[Array, "c1 *b d"]:
    """Hidden states after the prompt and after each of ``count`` thoughts: the last token of the prompt is read as thought 0 is.

    Args:
        shape: of the network.
        params: its weights.
        tokens: the prompts.
        count: thoughts.
        feed: ``feed(hidden, c)``, what is the next input when c thoughts were read; by default the hidden state itself.

    Raises:
        UsageError: if there are more places than learned positions, for a prompt that is none of tokens, and for a count below 0.
    """
    count = errors.whole("count", count, least=0)
    tokens = with_sink(shape, checked(tokens, shape.vocabulary, least=1))
    fits(shape, tokens.shape[-1] + count)
    x = entered(shape, params, tokens)
    past = remember(shape, params, x[..., :-1, :])

    def one(carry: tuple[Array, list[Memory]], c: Int[Array, ""]) -> tuple[tuple[Array, list[Memory]], Array]:
        x, recent = carry
        out, recent = step(shape, params, past, recent, x[..., None, :], c)
        return (feed(out[..., 0, :], c), recent), out[..., 0, :]

    return jax.lax.scan(one, (x[..., -1, :], room(past, count + 1)), jnp.arange(count + 1, dtype=jnp.int32))[1]


def fits(shape: Transformer, places: int) -> None:
    """Raises UsageError if there are more places than learned positions, and for a network that is not causal."""
    errors.require(shape, shape.causal, "token by token only causal networks can be read", "causal")
    if shape.position == "learned" and places > shape.length:
        raise UsageError(f"this network has learned {shape.length} positions (length), prompt and thoughts take {places}")


def entered(shape: Transformer, params: PyTree, tokens: Integer[Array, "*b n"]) -> Float[Array, "*b n d"]:
    """Embeddings without positions."""
    plain = dataclasses.replace(shape, position="none", rotary=None, scaling=None)
    return embedded(plain, params, tokens, jnp.arange(tokens.shape[-1], dtype=jnp.int32))


def whole(shape: Transformer, params: PyTree, tokens: Integer[Array, "*b n"], count: int) -> Float[Array, "c1 *b d"]:
    """What :func:`think` gives, with everything computed again for every thought: the published loop, for comparison."""
    tokens = with_sink(shape, checked(tokens, shape.vocabulary, least=1))
    at = jnp.arange(tokens.shape[-1] + errors.whole("count", count, least=0), dtype=jnp.int32)
    fits(shape, at.size)
    places = _positioned(shape, params, jnp.zeros((at.size, shape.width), shape.dtype), at)
    x, hidden = embedded(shape, params, tokens, at[: tokens.shape[-1]]), []
    for c in range(count + 1):
        hidden.append(without_sink(shape, forward(shape, params, x))[..., -1, :])
        if c < count:
            x = jnp.concatenate([x, (hidden[-1] + places[x.shape[-2]])[..., None, :]], -2)
    return jnp.stack(hidden)


def _blocks(shape: Transformer, params: PyTree) -> list[dict[str, Array]]:
    """The weights of every depth."""
    return [jax.tree.map(lambda w, i=i: w[i], blocks_of(shape, params)) for i in shape.walk]


def _positioned(shape: Transformer, params: PyTree, x: Float[Array, "*b n d"], at: Int[Array, " n"]) -> Float[Array, "*b n d"]:
    """Inputs with their positions, if these are added to them."""
    return x + placed(shape, params, at) if shape.added else x


def _length(shape: Transformer, memory: list[Memory]) -> int:
    """Places of a memory, if it has the layers and heads of this network."""
    sizes = {(len(memory), *part.shape[-3:-2], *part.shape[-1:]) for layer in memory for part in layer}
    if sizes != {(shape.depth, shape.key_heads, shape.entries)}:
        needed = f"{shape.depth} layers of {shape.key_heads} heads of {shape.entries} numbers"
        raise UsageError(f"this memory is not allowed: it is of another network, this one remembers {needed}")
    return memory[0].key.shape[-2]


def _read(shape: Transformer, w: dict[str, Array], x: Float[Array, "*b n d"], at: Int[Array, " n"]) -> tuple[Array, Memory]:
    """Queries [*b, h, n, e] of inputs at these positions, and what is remembered of them."""
    query, key, value = heads(shape, x, w)
    parts = turned(shape, query, at), turned(shape, key, at), value
    query, key, value = (jnp.swapaxes(part, -3, -2) for part in parts)
    return query, Memory(key, value)


def _block(
    shape: Transformer,
    w: dict[str, Array],
    x: Float[Array, "*b n d"],
    query: Float[Array, "*b h n e"],
    at: Int[Array, " n"],
    parts: list[Memory],
    keys: Int[Array, " m"],
    seen: Bool[Array, "n m"] | None = None,
) -> Float[Array, "*b n d"]:
    """One block for inputs at these positions, with the keys of all parts at those; ``seen``: by default what is not after it."""
    share, count = shape.heads // shape.key_heads, x.shape[-2]
    query = query.reshape(*query.shape[:-3], shape.key_heads, share * count, shape.entries)
    scores = jnp.concatenate([query @ jnp.swapaxes(part.key, -1, -2) for part in parts], -1) * shape.entries**-0.5
    scores = scores.reshape(*scores.shape[:-2], share, count, -1)  # [*b, k, s, n, m]
    if shape.position == "alibi":
        slopes = attention.alibi(at, keys, shape.heads, shape.dtype)
        scores = scores + slopes.reshape(shape.key_heads, share, *slopes.shape[-2:])
    sink = None if "sink" not in w else w["sink"].reshape(shape.key_heads, share, 1)
    seen = near(shape, keys <= at[:, None] if seen is None else seen, at[:, None] - keys)
    b = attention.weights(scores, shape.attention, seen, sink)
    b = b.reshape(*b.shape[:-3], share * count, -1).astype(x.dtype)
    out, first = jnp.zeros((), x.dtype), 0
    for part in parts:
        end = first + part.value.shape[-2]
        out = out + b[..., first:end] @ part.value
        first = end
    out = jnp.swapaxes(out.reshape(*x.shape[:-2], shape.heads, count, shape.entries), -3, -2)
    return merged(shape, x, out, w)
