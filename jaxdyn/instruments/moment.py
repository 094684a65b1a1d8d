"""A moment of training: what an instrument reads there, the network, its weights, data that stay the same, and their gradient.

Letters: b sequences of n tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from jaxdyn.nn import Transformer
from jaxdyn.nn.transformer import apply

__all__ = ["Batch", "Moment", "batch_loss", "log_likelihoods"]


class Batch(NamedTuple):
    """Sequences, what comes next at every place, how much that counts (the sum is 1), and what is known of the sequences."""

    tokens: Int[Array, "b n"]
    targets: Int[Array, "b n"]
    weights: Float[Array, "b n"]
    known: dict[str, Array]


class Moment(NamedTuple):
    """What can be read at one moment. ``batch`` is the same at all moments of a run; ``optimizer`` is the optimizer's state."""

    shape: Transformer
    params: PyTree
    batch: Batch
    gradient: PyTree  # of the loss on the batch
    loss: Callable[[PyTree], Float[Array, ""]]  # of any weights, on the batch
    optimizer: Any
    lr: Any
    step: Int[Array, ""]
    frozen: frozenset[str] = frozenset()  # names of weights that stay as they are drawn


def log_likelihoods(shape: Transformer, params: PyTree, batch: Batch, key: Any = None) -> Float[Array, "b n"]:
    """Log-likelihood of every target, in float32 at least."""
    logits = apply(shape, params, batch.tokens, key=key)
    wide = jax.nn.log_softmax(logits.astype(jnp.promote_types(logits.dtype, jnp.float32)))
    return jnp.take_along_axis(wide, batch.targets[..., None], -1)[..., 0]


def batch_loss(shape: Transformer, params: PyTree, batch: Batch, key: Any = None) -> Float[Array, ""]:
    """The mean cross-entropy of the targets, by their weights."""
    return -jnp.sum(batch.weights * log_likelihoods(shape, params, batch, key))
