r"""How a transformer learns the facts: cross-entropy of the last entity or of every token, on shuffled epochs, by AdamW.

Letters as in ``sentences.py``; b sequences per batch. The network itself is :func:`jaxdyn.nn.gpt2`.
Source: arXiv:2405.04669, section 5, and the defaults of its released code. Departure: the batches of an epoch are of (nearly) equal
size, so that none is small: at V = 800, six of at most 58 rather than five of 64 and one of 20.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import nn

FROZEN = ("embed", "position")
SILENT = ("o", "o_bias", "down", "down_bias")  # what a block adds to the residual stream passes through these
Scalar = float | Float[Array, ""]


class Batch(NamedTuple):
    """Sequences of a step, which of them count, and the key of its dropout."""

    sequences: Int[Array, "b n"]
    present: Bool[Array, " b"]
    key: PRNGKeyArray


def token_loss(
    net: nn.Network, params: PyTree, sequences: Int[Array, "b n"], key: PRNGKeyArray | None = None
) -> Float[Array, "b n-1"]:
    """Negative log-probability of every token but the first, given all before it."""
    logits = net.apply(params, sequences[:, :-1], key=key)
    return -jnp.take_along_axis(jax.nn.log_softmax(logits, -1), sequences[:, 1:, None], -1)[..., 0]


def word_loss(net: nn.Network, params: PyTree, sequences: Int[Array, "b n"], word: int) -> Float[Array, " b"]:
    """Negative log-probability of the last entity: the sum over its tokens, each given the true ones before it."""
    return jnp.sum(token_loss(net, params, sequences)[:, -word:], -1)


def objective(
    net: nn.Network, params: PyTree, batch: Batch, *, word: int, whole: bool | Bool[Array, ""], dropout: bool
) -> Float[Array, ""]:
    """Mean cross-entropy over the tokens of the last entity, or (``whole``) of the whole sequence, of the batch's sequences."""
    each = token_loss(net, params, batch.sequences, batch.key if dropout else None)
    last = jnp.arange(each.shape[1]) >= each.shape[1] - word
    counted = (batch.present[:, None] & (last | whole)).astype(each.dtype)
    return jnp.sum(each * counted) / jnp.sum(counted)


def batch_size(total: int, largest: int) -> int:
    """Sequences of a batch: at most ``largest``, and an epoch of ``total`` sequences in as many batches as that needs."""
    return -(-total // -(-total // largest))


def make_batch(
    sequences: Int[Array, "S n"], shown: Bool[Array, " S"], size: int, key: PRNGKeyArray
) -> tuple[Callable[[Int[Array, ""]], Batch], Int[Array, ""]]:
    """``batch(step) -> Batch``, and the number of batches per epoch (traced): an epoch shows each sequence in ``shown`` once.

    The order of an epoch is a function of its number, the dropout of a step of the step's number.
    """
    total = len(sequences)
    k_order, k_drop = jax.random.split(key)
    used = jnp.sum(shown, dtype=jnp.int32)
    count = (used + size - 1) // size
    slots = jnp.arange(size, dtype=jnp.int32)

    def batch(step: Int[Array, ""]) -> Batch:
        scores = jax.random.uniform(jax.random.fold_in(k_order, step // count), (total,), jnp.float32)
        order = jnp.argsort(jnp.where(shown, scores, 2.0))  # those in training first, in random order
        place = step % count * size + slots
        return Batch(sequences[order[jnp.minimum(place, total - 1)]], place < used, jax.random.fold_in(k_drop, step))

    return batch, count


def optimizer(
    lr: Scalar, decay: Scalar, frozen: bool | Bool[Array, ""], alone: bool | Bool[Array, ""] = False
) -> optax.GradientTransformation:
    """AdamW; frozen embeddings (of tokens and positions) do not move, nor decay; ``alone``: only those of tokens do."""

    def freeze(updates: PyTree, params: PyTree) -> PyTree:
        def fixed(name: str) -> bool | Bool[Array, ""]:
            return frozen | (alone & (name != "embed")) if name in FROZEN else alone

        return {name: jax.tree.map(lambda x, name=name: jnp.where(fixed(name), 0, x), u) for name, u in updates.items()}

    return optax.chain(optax.adamw(lr, b1=0.9, b2=0.999, weight_decay=decay), optax.stateless(freeze))


def read_out_alone(params: PyTree, alone: Bool[Array, ""]) -> PyTree:
    r"""The network's start or, where ``alone``, one whose blocks and positions do nothing: its tied read-out is all there is.

    Its last position's token x then has the logits :math:`N(e_x)^\top D\, e_y`, with embeddings e, the norm N and the norm's gain
    D, of alternating signs. Except for the norm they are symmetric in x and y: what raises y after x raises x after y.
    """

    def chosen(x: Array, other: Array) -> Array:
        return jnp.where(alone, other, x)

    gain = params["norm"]
    signs = jnp.where(jnp.arange(len(gain)) % 2 == 0, 1, -1).astype(gain.dtype)
    silent = {name: chosen(x, jnp.zeros_like(x)) for name, x in params["blocks"].items() if name in SILENT}
    changed = {"blocks": params["blocks"] | silent, "norm": chosen(gain, signs)}
    if "position" in params:
        changed["position"] = chosen(params["position"], jnp.zeros_like(params["position"]))
    return params | changed


def ordered(sequences: Int[Array, "S n"], word: int, swapped: bool | Bool[Array, ""]) -> Int[Array, "S n"]:
    """The sequences or, where ``swapped``, the same with the relation before the first entity."""
    places = np.arange(sequences.shape[1])
    places[: word + 1] = [word, *range(word)]
    return jnp.where(swapped, sequences[:, places], sequences)
