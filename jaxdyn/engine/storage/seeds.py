"""Seeds as a range wherever they are consecutive, so that a million of them take no memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Places", "Seeds", "places", "seed_array", "seeds_of"]

Seeds: TypeAlias = "range | tuple[int, ...]"  # a range wherever they are consecutive
Places: TypeAlias = "slice | np.ndarray[Any, Any]"


def seeds_of(numbers: Sequence[int] | np.ndarray[Any, Any]) -> Seeds:
    """Seeds as a range if they are consecutive, else as a tuple."""
    if isinstance(numbers, range) and numbers.step == 1:
        return numbers
    array = np.asarray(numbers, np.int64)
    if (np.diff(array) == 1).all():
        return range(int(array[0]), int(array[-1]) + 1) if len(array) else range(0)
    return tuple(array.tolist())


def seed_array(seeds: Seeds, dtype: Any = np.uint32) -> np.ndarray[Any, Any]:
    """Seeds as an array."""
    return np.arange(seeds.start, seeds.stop, dtype=dtype) if isinstance(seeds, range) else np.asarray(seeds, dtype)


def places(own: Seeds, wanted: Seeds) -> tuple[Places, Places]:
    """Places of the common seeds of two collections, in the first and in the second."""
    if isinstance(own, range) and isinstance(wanted, range):
        low, high = max(own.start, wanted.start), min(own.stop, wanted.stop)
        high = max(low, high)
        return slice(low - own.start, high - own.start), slice(low - wanted.start, high - wanted.start)
    _, one, other = np.intersect1d(seed_array(own, np.int64), seed_array(wanted, np.int64), return_indices=True)
    return one, other
