"""Numbers that index a table: tokens of a vocabulary, positions, codes.

JAX clamps an index beyond an axis and counts a negative one from the end. Here known numbers outside are refused. Of traced ones
nothing is known while their program is made: those beyond the table read its last row, and are found when the program runs inside
``checkify.checkify(f, errors=checkify.index_checks)`` of ``jax.experimental``; those below 0 count from the end.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Integer

from jaxdyn.errors import UsageError, is_traced, shown

__all__ = ["checked"]


def checked(
    numbers: Any, count: int, *, name: str = "tokens", of: str = "vocabulary", axes: int | None = None, least: int = 0
) -> Integer[Array, "..."]:
    """An array of whole numbers from 0 to ``count`` - 1, wide enough for ``count`` itself; known ones are in 32 bits.

    Args:
        numbers: the array, or nested lists.
        count: how many numbers there are.
        name: of the array, for messages.
        of: what ``count`` is called, for messages.
        axes: how many axes there are, 0 or 1; by default one or more.
        least: the smallest length of the last axis.

    Raises:
        UsageError: for other dtypes (bools and floats among them) and shapes, and for known numbers outside.
    """
    numbers = numbers if hasattr(numbers, "dtype") else _array(numbers, name)
    if isinstance(numbers, np.ma.MaskedArray):
        raise UsageError(f"{name}={shown(numbers)} is not allowed with a mask: there is no padding, all its numbers are read")
    if not jnp.issubdtype(numbers.dtype, jnp.integer):
        raise UsageError(f"{name}={shown(numbers)} is not allowed: it is an array of whole numbers")
    if numbers.ndim != axes if axes is not None else numbers.ndim < 1:
        needed = "one axis or more" if axes is None else f"{('no axis', 'one axis')[axes]}, and jax.vmap adds others"
        raise UsageError(f"{name}={shown(numbers)} is not allowed: it has {needed}")
    if numbers.ndim and numbers.shape[-1] < least:
        raise UsageError(f"{name}={shown(numbers)} is not allowed: its last axis has a length of {least} or more")
    if not is_traced(numbers):
        known = np.asarray(numbers)
        outside = known[(known < 0) | (known >= count)]
        if outside.size:
            raise UsageError(f"{outside[0]} in {name} is not allowed: it is a number from 0 to {count - 1} ({of}={count})")
        return numbers.astype(jnp.int32)
    return numbers if numbers.dtype.itemsize >= 4 else numbers.astype(jnp.int32)


def _array(numbers: Any, name: str) -> np.ndarray:
    """The array of nested lists."""
    try:
        return np.asarray(numbers)
    except ValueError as error:
        raise UsageError(f"{name}={shown(numbers)} is not allowed: its lists have equal lengths") from error
