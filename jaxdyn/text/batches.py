"""A token stream cut into parallel columns, and windows of the columns: inputs, and the next tokens as targets."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int

from jaxdyn.errors import UsageError, is_traced, shown, whole

__all__ = ["columns", "window", "windows_in"]


def columns(stream: Int[np.ndarray, " n"], count: int) -> Int[np.ndarray, "count length"]:
    """The stream as ``count`` columns of contiguous text, as long as they can be; the remainder at the end is dropped.

    Source: released code of arXiv:2310.00535 (20 columns in training, 10 in evaluation). Departure: it has time first; here
    ``columns[c]`` is the text of column c.

    Raises:
        UsageError: if the stream is not one row, ``count`` is below 1, or a column would have fewer than two tokens.
    """
    count = whole("count", count, least=1)
    if np.ndim(stream) != 1:
        raise UsageError(f"stream={shown(stream)} is not allowed: a stream is one row of tokens")
    length = len(stream) // count
    if length < 2:
        raise UsageError(f"a stream of {len(stream)} tokens is too short for {count} columns: each needs 2 tokens or more")
    return np.reshape(stream[: count * length], (count, length))


def windows_in(columns: Int[np.ndarray | Array, "count total"], length: int) -> int:
    """How many full windows of ``length`` inputs the columns have: (total - 1) // length, as the last token has no target.

    Departure: the published code ends with a shorter window where the columns do not end with a full one. On WikiText-2
    (20 columns, windows of 35) it makes 2929 batches an epoch; 2928 of them are full.

    Raises:
        UsageError: if the columns have no two axes, ``length`` is below 1, or the columns are too short for one window.
    """
    length = whole("length", length, least=1)
    if np.ndim(columns) != 2:
        raise UsageError(f"columns={shown(columns)} is not allowed: columns have two axes, as text.columns makes them")
    total = columns.shape[1]
    if total <= length:
        raise UsageError(f"columns of {total} tokens are too short for a window of {length} inputs and their targets")
    return (total - 1) // length


def window(
    columns: Int[np.ndarray | Array, "count total"], index: int | np.integer | Int[Array, ""], length: int
) -> tuple[Int[Array, "count {length}"], Int[Array, "count {length}"]]:
    """Inputs ``columns[:, index * length : (index + 1) * length]``, and as targets the tokens one place further.

    Args:
        columns: of :func:`columns`.
        index: 0 to :func:`windows_in` - 1; may be traced: a number below gives the first window, one above the last.
        length: inputs of a window.

    Raises:
        UsageError: as :func:`windows_in`; if ``index`` is no whole number; and if it is not traced and outside its range.
    """
    count, length = windows_in(columns, length), whole("length", length)
    index = whole("index", index, least=0, most=count - 1, traced=True)
    if is_traced(index):  # a narrow or a huge number would overflow in the product
        wide = index if index.dtype.itemsize >= 4 else index.astype(jnp.int32)
        index = jnp.clip(wide, 0, count - 1)
    tokens = lax.dynamic_slice_in_dim(jnp.asarray(columns), index * length, length + 1, axis=1)
    return tokens[:, :-1], tokens[:, 1:]
