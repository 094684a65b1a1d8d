"""Conversion of any structure to JSON types, so that an unusual value in a judge or a setting never loses computed results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["finite", "text"]

DEPTH = 50  # levels of nested structures; deeper ones, and cycles, are converted to text
LONGEST = 200  # characters of an object that is converted to text


def finite(value: Any, depth: int = 0) -> Any:
    """The same structure in JSON types.

    Non-finite numbers become null, arrays become lists; objects without a JSON type become text.
    """
    if isinstance(value, np.generic | np.ndarray) or type(value).__module__.startswith("jax"):
        value = _listed(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return text(value)
    if depth < DEPTH and isinstance(value, Mapping):
        return {_words(k): finite(v, depth + 1) for k, v in value.items()}
    if depth < DEPTH and isinstance(value, list | tuple | set | frozenset):
        return [finite(v, depth + 1) for v in value]
    return _words(value)


def text(value: str) -> str:
    """A text that can be written to a file: an unpaired surrogate is replaced by its code."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _words(value: Any) -> str:
    try:
        return text(str(value))[:LONGEST] if not isinstance(value, str) else text(value)
    except Exception:  # a foreign class may raise anything in __str__
        return f"<{type(value).__name__}>"


def _listed(value: Any) -> Any:
    """An array as nested lists, a NumPy scalar as a Python number; as text if NumPy cannot convert it."""
    try:
        return np.asarray(value).tolist()
    except Exception:  # a traced array, a key
        return _words(value)
