r"""How a transformer learns the facts: cross-entropy of the last entity or of every token, on shuffled epochs, by AdamW.

Letters as in ``words.py``; b sequences per batch. The network itself is :func:`jaxdyn.nn.gpt2`.
Source: arXiv:2405.04669, section 5, and the defaults of its released code. Departure: the batches of an epoch are of (nearly) equal
size, so that none is small: at V = 800, six of at most 58 rather than five of 64 and one of 20.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import nn

__all__ = ["Batch", "batch_size", "make_batch", "objective", "optimizer", "token_loss", "word_loss"]

FROZEN = ("embed", "position")
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
        draws = jax.random.uniform(jax.random.fold_in(k_order, step // count), (total,), jnp.float32)
        order = jnp.argsort(jnp.where(shown, draws, 2.0))  # those in training first, in random order
        place = step % count * size + slots
        return Batch(sequences[order[jnp.minimum(place, total - 1)]], place < used, jax.random.fold_in(k_drop, step))

    return batch, count


def optimizer(lr: Scalar, decay: Scalar, frozen: bool | Bool[Array, ""]) -> optax.GradientTransformation:
    """AdamW; frozen embeddings (of tokens and positions) do not move, nor decay."""

    def hold(updates: PyTree, params: PyTree) -> PyTree:
        return {name: jnp.where(frozen, 0, x) if name in FROZEN else x for name, x in updates.items()}

    return optax.chain(optax.adamw(lr, b1=0.9, b2=0.999, weight_decay=decay), optax.stateless(hold))
