r"""A transformer whose last outputs are its next inputs: attention, a threshold MLP without a residual, outputs of size one.

.. math:: h \leftarrow x + \sum_{\text{heads}} b\,V O, \qquad y = \mathrm{MLP}(h) / \|\mathrm{MLP}(h)\|,\ \
   \mathrm{MLP}(h) = 1\{h W_1 \ge \epsilon\}\, W_2, \qquad b = \mathrm{softmax}(Q K^\top)

Weights are plain matrices; nothing here knows of graphs. A sequence is read in one pass (:func:`forward`), or a prompt in one pass
and what follows it bit by bit, with caches of keys and values (:func:`step`). Positions are added to every input, thoughts
included; a layer may rotate its queries and keys by positions instead.
Source: arXiv:2505.12514, section 3 (architecture, continuous thoughts). Departure: outputs of size 0 stay 0.
Letters: d width, h heads of e and f numbers, u units, n positions (queries), m positions (keys), V tokens, T places, r places after
the prompt.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxdyn.nn import attention


class Rotary(NamedTuple):
    """The base of the rotation, and 1 or 0 for whether there is one."""

    base: Float[Array, ""]
    on: Float[Array, ""]


class Layer(NamedTuple):
    """Matrices of one layer."""

    query: Float[Array, "h d e"]
    key: Float[Array, "h d e"]
    value: Float[Array, "h d f"]
    out: Float[Array, "h f d"]
    inner: Float[Array, "d u"]
    outer: Float[Array, "u d"]
    threshold: Float[Array, "*b"]  # one for all, or [b, 1, 1]: one per sequence
    rotary: Rotary | None = None


class Params(NamedTuple):
    """All weights; ``position`` holds one row per place."""

    embed: Float[Array, "V d"]
    position: Float[Array, "T d"]
    layers: tuple[Layer, ...]
    head: Float[Array, "d V"]


class Cache(NamedTuple):
    """Keys and values of one layer."""

    key: Float[Array, "*b m h e"]
    value: Float[Array, "*b m h f"]


def inputs(params: Params, x: Float[Array, "*b n d"], at: Int[Array, " n"]) -> Float[Array, "*b n d"]:
    """Contents, embeddings or thoughts, with positions added."""
    return x + params.position[at]


def forward(params: Params, x: Float[Array, "*b n d"]) -> tuple[list[Float[Array, "*b n d"]], list[Cache], list[Array]]:
    """A whole sequence of inputs in one causal pass: every layer's outputs, keys and values, and weights [*b, h, n, n]."""
    at, outputs, caches, maps = jnp.arange(x.shape[-2], dtype=jnp.int32), [], [], []
    for layer in params.layers:
        cache = _remembered(layer, x, at)
        x, b = _block(layer, x, at, [cache], attention.causal_mask(at.size))
        outputs.append(x)
        caches.append(cache)
        maps.append(b)
    return outputs, caches, maps


def empty(past: list[Cache], places: int) -> list[Cache]:
    """Caches of r places for what follows the prompt, in addition to those of the prompt."""
    blank = lambda old: jnp.zeros((*old.shape[:-3], places, *old.shape[-2:]), old.dtype)  # noqa: E731
    return jax.tree.map(blank, past)


def step(
    params: Params, past: list[Cache], recent: list[Cache], x: Float[Array, "*b n d"], slot: Int[Array, ""]
) -> tuple[Float[Array, "*b n d"], list[Cache], list[Array]]:
    """Outputs for n inputs that follow one another from a place after the prompt on.

    Args:
        params: the weights.
        past: what is remembered of the prompt; it does not change.
        recent: what is remembered of the places after it.
        x: inputs, with positions.
        slot: number of the first one's place after the prompt; what stood there and in the next ones is overwritten.
    """
    before, rows = past[0].key.shape[-3], jnp.arange(x.shape[-2], dtype=jnp.int32)
    at, number = before + slot + rows, jnp.arange(recent[0].key.shape[-3], dtype=jnp.int32)
    mask = jnp.concatenate([jnp.ones((rows.size, before), bool), number <= slot + rows[:, None]], 1)
    after, maps = [], []
    for layer, old, cache in zip(params.layers, past, recent, strict=True):
        new = _remembered(layer, x, at)
        put = lambda room, one: jax.lax.dynamic_update_slice_in_dim(room, one, slot, room.ndim - 3)  # noqa: E731
        grown = jax.tree.map(put, cache, new)
        x, b = _block(layer, x, at, [old, grown], mask)
        after.append(grown)
        maps.append(b)
    return x, after, maps


def _turned(layer: Layer, x: Float[Array, "*b n h e"], at: Int[Array, " n"]) -> Float[Array, "*b n h e"]:
    return x if layer.rotary is None else attention.rotate(x, layer.rotary.base, at * layer.rotary.on.astype(at.dtype))


def _remembered(layer: Layer, x: Float[Array, "*b n d"], at: Int[Array, " n"]) -> Cache:
    """Keys and values of inputs."""
    return Cache(_turned(layer, jnp.einsum("...nd,hde->...nhe", x, layer.key), at), jnp.einsum("...nd,hdf->...nhf", x, layer.value))


def _block(
    layer: Layer, x: Float[Array, "*b n d"], at: Int[Array, " n"], caches: list[Cache], mask: Bool[Array, "n m"]
) -> tuple[Float[Array, "*b n d"], Float[Array, "*b h n m"]]:
    """One layer: attention to what is in the caches, one after the other, then the MLP."""
    query = _turned(layer, jnp.einsum("...nd,hde->...nhe", x, layer.query), at)
    scores = [jnp.einsum("...nhe,...mhe->...hnm", query, cache.key) for cache in caches]
    b = attention.weights(jnp.concatenate(scores, -1), "softmax", mask)
    parts = jnp.split(b, np.cumsum([s.shape[-1] for s in scores])[:-1].tolist(), -1)
    o = sum(jnp.einsum("...hnm,...mhf->...nhf", part, cache.value) for part, cache in zip(parts, caches, strict=True))
    h = x + jnp.einsum("...nhf,hfd->...nd", o, layer.out)
    y = (h @ layer.inner >= layer.threshold).astype(x.dtype) @ layer.outer
    size = jnp.linalg.norm(y, axis=-1, keepdims=True)
    return y / jnp.where(size > 0, size, 1), b
