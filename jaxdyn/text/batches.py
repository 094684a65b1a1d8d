"""A token stream cut into parallel columns, and windows of the columns: inputs, and the next tokens as targets."""

from __future__ import annotations

from typing import SupportsIndex

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int, Integer

from jaxdyn.errors import UsageError, is_traced, shown, whole

__all__ = ["columns", "window", "windows_in"]


def columns(stream: Int[np.ndarray, " n"], count: SupportsIndex) -> Int[np.ndarray, "count length"]:
    """The stream as ``count`` columns of contiguous text, as long as they can be; the remainder at the end is dropped.

    Source: released code of arXiv:2310.00535 (20 columns in training, 10 in evaluation). Departure: it has time first; here
    ``columns[c]`` is the text of column c.

    Raises:
        UsageError: if the stream is not one row, ``count`` is below 1, or a column would have fewer than two tokens.
    """
    rows = whole("count", count, least=1)
    if np.ndim(stream) != 1:
        raise UsageError(f"stream={shown(stream)} is not allowed: a stream is one row of tokens")
    length = len(stream) // rows
    if length < 2:
        raise UsageError(f"a stream of {len(stream)} tokens is too short for {rows} columns: each needs 2 tokens or more")
    return np.reshape(stream[: rows * length], (rows, length))


def windows_in(columns: Int[np.ndarray | Array, "count total"], length: SupportsIndex) -> int:
    """How many full windows of ``length`` inputs the columns have: (total - 1) // length, as the last token has no target.

    Departure: the published code ends with a shorter window where the columns do not end with a full one. On WikiText-2
    (20 columns, windows of 35) it makes 2929 batches an epoch; 2928 of them are full.

    Raises:
        UsageError: if the columns have no two axes, ``length`` is below 1, or the columns are too short for one window.
    """
    inputs = whole("length", length, least=1)
    if np.ndim(columns) != 2:
        raise UsageError(f"columns={shown(columns)} is not allowed: columns have two axes, as text.columns makes them")
    total = columns.shape[1]
    if total <= inputs:
        raise UsageError(f"columns of {total} tokens are too short for a window of {inputs} inputs and their targets")
    return (total - 1) // inputs


def window(
    columns: Int[np.ndarray | Array, "count total"], index: int | np.integer | Integer[Array, ""], length: SupportsIndex
) -> tuple[Int[Array, "count {length}"], Int[Array, "count {length}"]]:
    """Inputs ``columns[:, index * length : (index + 1) * length]``, and as targets the tokens one place further.

    Args:
        columns: of :func:`columns`.
        index: 0 to :func:`windows_in` - 1; may be traced: a number below gives the first window, one above the last.
        length: inputs of a window.

    Raises:
        UsageError: as :func:`windows_in`; if ``index`` is no whole number; and if it is not traced and outside its range.
    """
    count, inputs = windows_in(columns, length), whole("length", length)
    place = whole("index", index, least=0, most=count - 1, traced=True)
    if is_traced(place):  # a narrow or a huge number would overflow in the product
        wide = place if place.dtype.itemsize >= 4 else place.astype(jnp.int32)
        place = jnp.clip(wide, 0, count - 1)
    tokens = lax.dynamic_slice_in_dim(jnp.asarray(columns), place * inputs, inputs + 1, axis=1)
    return tokens[:, :-1], tokens[:, 1:]
