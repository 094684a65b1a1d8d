"""Pieces of a text: how they are cut, how programs run over them, and what a pass over them costs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from jaxdyn.models.instruments.instrument import Cost, Tick
from jaxdyn.nn.decoder import Decoder

if TYPE_CHECKING:
    from jaxdyn.models.loading import Model

__all__ = ["attention_bytes", "each_piece", "first", "forward", "reading_cost", "size"]

Tokens = Int[np.ndarray, "piece n"]


def first(tokens: Tokens, pieces: int, length: int) -> Tokens:
    """The first pieces, and the first tokens of them."""
    return tokens[:pieces, :length]


def each_piece(model: Model, function: Callable[..., Any], tokens: Tokens, tick: Tick, *more: Any) -> Any:
    """``function(shape, params, piece, *more)`` for each piece, stacked in float32 or whole numbers; one program for all of them.

    Parameters are arguments of the program, which serves all models of one shape.
    """
    program, results = _jitted(function), []
    for piece in tokens:
        results.append(jax.device_get(program(model.shape, model.params, jnp.asarray(piece, jnp.int32), *more)))
        tick(1 / len(tokens))
    return jax.tree.map(lambda *leaves: np.stack([_plain(leaf) for leaf in leaves]), *results)


@functools.cache
def _jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(function, static_argnums=0)


def _plain(leaf: Any) -> Any:
    """A narrow float as float32: files know no bfloat16."""
    leaf = np.asarray(leaf)
    return leaf.astype(np.float32) if leaf.dtype.kind == "V" or leaf.dtype == np.float16 else leaf


def size(shape: Decoder) -> int:
    """Weights that a token meets: those of all blocks at every use, and the read-out's."""
    return shape.depth * sum(int(np.prod(s)) for s in shape.weights.values()) + shape.vocabulary * shape.width


def forward(shape: Decoder, length: int) -> float:
    """Operations for each token of a text of this length, read as a whole."""
    return 2.0 * size(shape) + 4.0 * length * shape.depth * shape.heads * shape.entries


def attention_bytes(shape: Decoder, length: int) -> float:
    """Bytes of one layer's attention weights, its scores among them, and of logits while they are read."""
    return 4.0 * (4 * shape.heads * length**2 + 8 * length * max(shape.width, shape.hidden) + 64 * shape.vocabulary)


def reading_cost(pieces: int, length: int, passes: float = 1.0, copies: float = 1.0) -> Callable[[Decoder, Tokens], Cost]:
    """The cost of reading the first pieces a number of times, with so many copies of a layer's attention in memory."""

    def cost(shape: Decoder, tokens: Tokens) -> Cost:
        used = first(tokens, pieces, length)
        return Cost(passes * used.size * forward(shape, used.shape[1]), copies * attention_bytes(shape, used.shape[1]))

    return cost
