"""Structures of JSON types, whatever a judge or a setting put into them: what cannot be written must not cost what was computed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["finite", "text"]

DEPTH = 50  # of structures within structures; beyond, and in circles, their words
LONGEST = 200  # characters of the words of anything else


def finite(value: Any, depth: int = 0) -> Any:
    """The same structure in JSON types.

    Null stands for numbers that JSON does not know; arrays are lists; anything that has no JSON type is its words.
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
    """Words that can be written to a file: half of a surrogate pair is shown as its code."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _words(value: Any) -> str:
    try:
        return text(str(value))[:LONGEST] if not isinstance(value, str) else text(value)
    except Exception:  # whatever a foreign class does when it is asked for its words
        return f"<{type(value).__name__}>"


def _listed(value: Any) -> Any:
    """An array as nested lists, a scalar of NumPy as Python's; the value itself where it is neither."""
    try:
        return np.asarray(value).tolist()
    except Exception:  # a traced array, a key
        return _words(value)
