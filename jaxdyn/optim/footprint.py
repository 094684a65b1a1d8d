r"""Bytes of training a decoder: weights, gradients, optimizer states, activations with and without checkpointing.

Nothing is allocated. Weights and states are those that ``jax.eval_shape`` finds for the real initialisers, so they are exact; so
are activations, what ``jax.vjp`` of the loss keeps for its backward pass. A compiler may keep less, and needs work space.
With L layers the activations are :math:`A(L) = A_0 + L a`; with a checkpoint at every layer's input of c bytes they are

.. math:: A_0 + L c + a,

inputs of all layers, and what one layer keeps while it is recomputed. Letters: L layers, b sequences of n tokens.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import PyTree

from jaxdyn.errors import whole
from jaxdyn.nn import Transformer
from jaxdyn.nn.transformer import apply, init
from jaxdyn.optim.axes import Dims, hidden_matrices
from jaxdyn.optim.memory import nbytes
from jaxdyn.optim.methods import METHODS, Options, method

__all__ = ["Footprint", "activations", "footprint", "footprints", "shapes"]


class Footprint(NamedTuple):
    """Bytes by what they are for.

    States are all that the optimizer holds: moments, bases and counters, of LoRA and its like also the factors. ``checkpointed``
    are the activations with a checkpoint at every layer; ``layerwise`` is the gradient's size where one layer is updated at a time
    (:mod:`jaxdyn.optim.layerwise`).
    """

    weights: int
    gradients: int
    states: int
    activations: int
    checkpointed: int
    layerwise: int

    @property
    def total(self) -> int:
        """Without checkpointing."""
        return self.weights + self.gradients + self.states + self.activations

    @property
    def least(self) -> int:
        """With checkpointing and layerwise updates."""
        return self.weights + self.layerwise + self.states + self.checkpointed


def shapes(shape: Transformer) -> PyTree:
    """The shapes of a decoder's weights."""
    return jax.eval_shape(lambda: init(shape, jax.random.key(0)))


def activations(shape: Transformer, batch: int, length: int) -> tuple[int, int]:
    """Bytes that the backward pass of the mean cross-entropy needs: without checkpointing, and with one at every layer.

    Raises:
        UsageError: for sizes that are no positive whole numbers, or a length of 1.
    """
    return _activations(shape.known, whole("batch", batch, least=1), whole("length", length, least=2))


@functools.cache
def _activations(shape: Transformer, batch: int, length: int) -> tuple[int, int]:
    one, two = (_residual_bytes(dataclasses.replace(shape, layers=layers), batch, length) for layers in (1, 2))
    each, rest = two - one, 2 * one - two
    inputs = shape.depth * batch * length * shape.width * jnp.dtype(shape.dtype).itemsize
    return rest + shape.layers * each, rest + inputs + each


def _residual_bytes(shape: Transformer, batch: int, length: int) -> int:
    """Bytes of the arrays between the forward and the backward pass that are no weights."""
    key = jax.random.key(0) if shape.dropout else None

    def residuals(params: PyTree, tokens: Any) -> list[Any]:
        def loss(p: PyTree) -> Any:
            logits = apply(shape, p, tokens, key=key)[:, :-1].astype(jnp.float32)
            return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]))

        pull = jax.vjp(loss, params)[1]
        own = {id(x) for x in jax.tree.leaves(params)}
        return [x for x in jax.tree.leaves(pull) if id(x) not in own]

    return nbytes(jax.eval_shape(residuals, shapes(shape), jax.ShapeDtypeStruct((batch, length), jnp.int32)))


def footprint(
    shape: Transformer, name: str, options: Options, *, batch: int = 1, length: int = 1024, dims: Dims = hidden_matrices
) -> Footprint:
    """Bytes of training with a method of :data:`jaxdyn.optim.methods.METHODS`.

    Args:
        shape: the decoder; its dtype is that of weights, gradients and activations.
        name: the method.
        options: of the method.
        batch: sequences at a time.
        length: their tokens.
        dims: which leaves are matrices, and how.

    Raises:
        UsageError: for an unknown method, options or sizes that are not allowed.
    """
    params = shapes(shape)
    parts = [part.size * part.dtype.itemsize // shape.layers for part in params["blocks"].values()]
    largest = max(sum(parts), *(nbytes(part) for key, part in params.items() if key != "blocks"))
    states = nbytes(jax.eval_shape(method(name, 1e-3, options, dims=dims).tx.init, params))
    return Footprint(nbytes(params), nbytes(params), states, *activations(shape, batch, length), largest)


def footprints(
    shape: Transformer, options: Options, names: Iterable[str] = tuple(METHODS), *, batch: int = 1, length: int = 1024
) -> dict[str, Footprint]:
    """:func:`footprint` of every method, or of those named."""
    return {name: footprint(shape, name, options, batch=batch, length=length) for name in names}
