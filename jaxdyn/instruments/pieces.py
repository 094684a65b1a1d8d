"""Pieces of a text: how they are cut, how programs run over them, what a pass over them costs, and uniform attention over one.

Along training the pieces are the first sequences of the batch that is read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxdyn.instruments.instrument import Cost, Tick
from jaxdyn.nn import Transformer
from jaxdyn.nn.activations import cross_entropies, reduce_blocks
from jaxdyn.nn.transformer import mask_of

if TYPE_CHECKING:
    from jaxdyn.instruments.instrument import Model
    from jaxdyn.instruments.moment import Moment

__all__ = [
    "attention_bytes",
    "each_piece",
    "finite_pieces",
    "first",
    "forward",
    "mean_reading",
    "pieces_read",
    "reading",
    "reading_cost",
    "size",
    "uniform_weights",
]

Tokens = Int[np.ndarray, "piece n"]
SEQUENCES = 8  # that are read along training
READ_PIECES, READ_TOKENS = "read_pieces", "read_tokens"  # attributes of a Dataset


def first(tokens: Tokens, pieces: int, length: int) -> Tokens:
    """The first pieces, and the first tokens of them."""
    return tokens[:pieces, :length]


def reading(used: Tokens) -> dict[str, int]:
    """Attributes of a Dataset that say how many pieces were read, and how many tokens of each (:func:`pieces_read`)."""
    return {READ_PIECES: int(used.shape[0]), READ_TOKENS: int(used.shape[1])}


def pieces_read(ds: xr.Dataset) -> tuple[int, int] | None:
    """How many pieces a Dataset is of, and how many tokens of each; None: it is of no text."""
    return (int(ds.attrs[READ_PIECES]), int(ds.attrs[READ_TOKENS])) if READ_PIECES in ds.attrs else None


def each_piece(model: Model, function: Callable[..., Any], tokens: Int[np.ndarray, "piece ..."], tick: Tick, *more: Any) -> Any:
    """``function(shape, params, piece, *more)`` for each piece, stacked in float32 or whole numbers; one program for all of them.

    A piece is an array of tokens, of any shape. Parameters are arguments of the program, which serves all models of one shape.
    """
    program, results = _jitted(function), []
    for piece in tokens:
        results.append(jax.device_get(program(model.shape, model.params, jnp.asarray(piece, jnp.int32), *more)))
        tick(1 / len(tokens))
    return jax.tree.map(lambda *leaves: np.stack([_plain(leaf) for leaf in leaves]), *results)


def mean_reading(moment: Moment, function: Callable[..., dict[str, Array]]) -> dict[str, Array]:
    """``function(shape, params, sequence)`` of a batch's first sequences: the mean over those of which it is a number."""
    tokens = moment.batch.tokens[:SEQUENCES]
    each = jax.vmap(lambda sequence: function(moment.shape, moment.params, sequence))(tokens)
    return {name: jnp.nanmean(values.astype(jnp.float32), 0) for name, values in each.items()}


def finite_pieces(model: Model, tokens: Tokens, most: int) -> tuple[Int[np.ndarray, " kept"], int]:
    """Places of the first so many pieces over which the model's pass is finite, and how many pieces were read to find them."""
    program, kept, read = _jitted(_is_finite), list[int](), 0
    for piece in tokens:
        if len(kept) == most:
            break
        if program(model.shape, model.params, jnp.asarray(piece, jnp.int32)):
            kept.append(read)
        read += 1
    return np.asarray(kept, int), read


def _is_finite(shape: Transformer, params: PyTree, tokens: Int[Array, " n"]) -> Bool[Array, ""]:
    """Whether the residual stream has a finite length after every block, and logits are finite, everywhere in a piece."""
    x, lengths = reduce_blocks(shape, params, tokens[None], lambda block: jnp.sum(jnp.square(block.after.astype(jnp.float32))))
    return jnp.all(jnp.isfinite(lengths)) & jnp.all(jnp.isfinite(cross_entropies(shape, params, x[0], tokens)))


@functools.cache
def _jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(function, static_argnums=0)


def _plain(leaf: Any) -> Any:
    """A narrow float as float32: files know no bfloat16."""
    leaf = np.asarray(leaf)
    return leaf.astype(np.float32) if leaf.dtype.kind == "V" or leaf.dtype == np.float16 else leaf


def size(shape: Transformer) -> int:
    """Weights that a token meets: those of all blocks at every use, and the read-out's."""
    return shape.depth * sum(int(np.prod(s)) for s in shape.weights.values()) + shape.vocabulary * shape.width


def forward(shape: Transformer, length: int) -> float:
    """Operations for each token of a text of this length, read as a whole."""
    return 2.0 * size(shape) + 4.0 * length * shape.depth * shape.heads * shape.entries


def attention_bytes(shape: Transformer, length: int) -> float:
    """Bytes of one layer's attention weights, its scores among them, and of logits while they are read."""
    return 4.0 * (4 * shape.heads * length**2 + 8 * length * max(shape.width, (shape.hidden or 0)) + 64 * shape.vocabulary)


def reading_cost(pieces: int, length: int, passes: float = 1.0, copies: float = 1.0) -> Callable[[Transformer, Tokens], Cost]:
    """The cost of reading the first pieces a number of times, with so many copies of a layer's attention in memory."""

    def cost(shape: Transformer, tokens: Tokens) -> Cost:
        used = first(tokens, pieces, length)
        return Cost(passes * used.size * forward(shape, used.shape[1]), copies * attention_bytes(shape, used.shape[1]))

    return cost


def uniform_weights(shape: Transformer, length: int) -> Float[np.ndarray, "n n"]:
    """Weights of keys (columns) if every query (row) shared its attention out equally among those that it sees.

    Args:
        shape: says which these are.
        length: tokens of a text, the sink token among them if there is one.
    """
    with jax.ensure_compile_time_eval():
        seen = np.asarray(mask_of(shape, length))
    return seen / np.maximum(seen.sum(1, keepdims=True), 1)
