"""What happens inside a transformer's blocks, reduced layer by layer while a text is read.

Attention weights of all layers at once would fill the memory of a large model: here a function is given one block after another,
inside the loop over layers, and only what it returns is stacked. What it does not use is not computed.
Letters: b texts of n tokens, h heads of e numbers, k heads of keys and values, d width, f units of the MLP, V tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, PyTree

from jaxdyn.nn.config import Transformer
from jaxdyn.nn.transformer import (
    attended,
    blocks_of,
    ending,
    expanded,
    heads,
    last,
    parts,
    read,
    slopes_of,
    turned,
    without_sink,
)

__all__ = ["BlockActivations", "cross_entropies", "reduce_blocks", "scores"]

ROWS = 64  # tokens whose logits are in memory at once


class BlockActivations(NamedTuple):
    """One block at work. A sink token is the first token of all arrays."""

    weights: dict[str, Array]  # of the block
    before: Float[Array, "b n d"]  # residual stream
    query: Float[Array, "b n h e"]  # without positions, as are keys
    key: Float[Array, "b n k e"]
    value: Float[Array, "b n k e"]
    attention: Float[Array, "b h n n"]
    mixed: Float[Array, "b n h e"]  # values as the heads mix them
    written: Float[Array, "b n d"]  # what attention adds to the stream
    units: Float[Array, "b n f"]
    added: Float[Array, "b n d"]  # what the MLP adds to the stream
    after: Float[Array, "b n d"]  # residual stream


def reduce_blocks(
    shape: Transformer, params: PyTree, tokens: Integer[Array, "b n"], reduce: Callable[[BlockActivations], Any]
) -> tuple[Float[Array, "b n d"], Any]:
    """The last residual stream after its norm, and what ``reduce`` makes of every block, stacked by depth.

    Raises:
        UsageError: as of :func:`jaxdyn.nn.transformer.trunk`.
    """
    enter, _, _ = parts(shape)

    def one(x: Array, w: dict[str, Array]) -> tuple[Array, Any]:
        q, k, v = heads(shape, x, w)
        mixed, b = attended(shape, q, k, v, w.get("sink"))
        end = ending(shape, x, mixed, w)
        return end.after, reduce(BlockActivations(w, x, q, k, v, b, mixed, *end))

    x, reduced = jax.lax.scan(one, enter(params, tokens), expanded(shape, blocks_of(shape, params)))
    return without_sink(shape, last(shape, params, x)), reduced


def scores(shape: Transformer, block: BlockActivations) -> Float[Array, "b h n n"]:
    """Scores of queries (rows) on keys (columns) in a block at work, with their positions, whatever the kind of attention."""
    wide = jnp.promote_types(block.query.dtype, jnp.float32)
    q, k = turned(shape, block.query), jnp.repeat(turned(shape, block.key), shape.heads // shape.key_heads, axis=-2)
    found = jnp.einsum("bnhe,bmhe->bhnm", q, k, preferred_element_type=wide) * shape.entries**-0.5
    at = jnp.arange(q.shape[-3], dtype=jnp.int32)
    return found + slopes_of(shape, at) if shape.position == "alibi" else found


def cross_entropies(shape: Transformer, params: PyTree, x: Float[Array, "n d"], targets: Int[Array, " n"]) -> Float[Array, " n"]:
    """Cross-entropy of each target, in nats, from the last residual stream after its norm; few logits are in memory at once."""
    count = x.shape[0]
    blocks = -(-count // ROWS)
    padded = jnp.pad(x, ((0, blocks * ROWS - count), (0, 0))).reshape(blocks, ROWS, -1)
    wanted = jnp.pad(jnp.asarray(targets), (0, blocks * ROWS - count)).reshape(blocks, ROWS)

    def one(pair: tuple[Array, Array]) -> Array:
        logits = read(shape, params, pair[0])
        wide = jax.nn.log_softmax(logits.astype(jnp.promote_types(logits.dtype, jnp.float32)))
        return -jnp.take_along_axis(wide, pair[1][:, None], -1)[:, 0]

    return jax.lax.map(one, (padded, wanted)).reshape(-1)[:count]
