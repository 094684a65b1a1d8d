"""Errors that a user may meet, each with one plain sentence, and checks of single values that raise them.

The checks treat Python, NumPy and JAX numbers alike: a scalar of any of these libraries is a number, a bool is not. A traced value
(inside ``jit``, ``vmap`` or ``grad``) is not known yet: it passes where ``traced`` allows it, if its dtype and shape fit.
"""

from __future__ import annotations

import math
import operator
import sys
from typing import Any

__all__ = [
    "LARGEST",
    "Absent",
    "Inconclusive",
    "StoreError",
    "UsageError",
    "flag",
    "is_traced",
    "missing",
    "number",
    "one_line",
    "require",
    "shown",
    "whole",
]

LARGEST = 2**31 - 1  # size of an array: JAX counts entries along an axis in int32
LONGEST = 60  # characters of a value that a message shows


class UsageError(ValueError):
    """Wrong input: the message names what was given and what is allowed (command line: exit code 2)."""

    author: Any = None  # the function that made the refused result, if another function refused it


class Absent(UsageError):
    """A trial needs something that is not on this machine; the message says how to get it. The claim is skipped."""


class StoreError(UsageError):
    """An output folder cannot be used: it is not writable, full, damaged, or used by another job."""


class Inconclusive(Exception):
    """Raised by a judge that cannot decide on the data it was given, e.g. a slope from one step size."""


def require(setting: Any, condition: Any, allowed: str, *names: str) -> None:
    """Refuse a setting unless the condition holds: ``field=value is not allowed: <what is>``.

    Args:
        setting: the object that has the fields.
        condition: what must be true of them.
        allowed: what is allowed, in words: ``"rate is positive"``.
        *names: the fields that the condition is about; the message shows their values.

    Raises:
        UsageError: if the condition is false.
    """
    if not condition:
        values = ", ".join(f"{name}={getattr(setting, name)}" for name in names)
        raise UsageError(f"{values} {'is' if len(names) == 1 else 'are'} not allowed: {allowed}")


def missing(what: str, library: str, extra: str) -> Absent:
    """The error to raise if an optional library is not installed.

    Args:
        what: the feature that needs it, as the subject of a sentence in the singular.
        library: the library's name.
        extra: the extra of jaxdyn that installs it.
    """
    return Absent(f"{what} needs the library {library}: pip install 'jaxdyn[{extra}]'")


def is_traced(value: Any) -> bool:
    """Whether a value is known only when its program runs, so that Python cannot compare it."""
    jax = sys.modules.get("jax")  # not imported here: the command line shows its help without it
    return jax is not None and isinstance(value, jax.core.Tracer)


def whole(name: str, value: Any, *, least: float = -math.inf, most: float = math.inf, traced: bool = False) -> Any:
    """A whole number of Python, NumPy or JAX, or an array without axes, as a Python int; bools and floats are refused.

    Args:
        name: the value's name in the message.
        value: the value.
        least: the smallest allowed number.
        most: the largest allowed number.
        traced: whether a traced value is allowed; it is returned unchanged.

    Raises:
        UsageError: for anything else: ``name=value is not allowed: name is a whole number, at least 1``, or ``name is at least 1``.
    """
    if traced and is_traced(value) and value.ndim == 0 and _kind(value) in "iu":
        return value
    converted = None if is_traced(value) else _index(value)
    bounds = _bounds(least, most)
    if converted is None:
        raise UsageError(f"{name}={shown(value)} is not allowed: {name} is a whole number{', ' * bool(bounds)}{bounds}")
    if not least <= converted <= most:
        raise UsageError(f"{name}={shown(value)} is not allowed: {name} is {bounds}")
    return converted


def number(
    name: str,
    value: Any,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    traced: bool = False,
) -> Any:
    """A finite real number of Python, NumPy or JAX, or an array without axes, as a Python float; bools are refused.

    Args:
        name: the value's name in the message.
        value: the value.
        least: the smallest allowed number.
        most: the largest allowed number.
        above: the value is larger than this.
        below: the value is smaller than this.
        traced: whether a traced value is allowed; it is returned unchanged.

    Raises:
        UsageError: for anything else, including NaN and infinity; worded as in :func:`whole`.
    """
    if traced and is_traced(value) and value.ndim == 0 and _kind(value) in "iufV":
        return value
    converted = math.nan
    if not is_traced(value) and not isinstance(value, bool | str | bytes) and getattr(value, "ndim", 0) == 0:
        try:
            converted = float(value) if _kind(value) in "iufV" else math.nan
        except (TypeError, ValueError, OverflowError):
            converted = math.nan
    bounds = _bounds(least, most, above, below)
    if not math.isfinite(converted):
        raise UsageError(f"{name}={shown(value)} is not allowed: {name} is a finite number{', ' * bool(bounds)}{bounds}")
    if not (least <= converted <= most and above < converted < below):
        raise UsageError(f"{name}={shown(value)} is not allowed: {name} is {bounds}")
    return converted


def flag(name: str, value: Any) -> bool:
    """A truth value of Python or NumPy as a Python bool; numbers and words are refused.

    Raises:
        UsageError: for anything else.
    """
    if not isinstance(value, bool) and not (_kind(value) == "b" and getattr(value, "ndim", 1) == 0 and not is_traced(value)):
        raise UsageError(f"{name}={shown(value)} is not allowed: {name} is True or False")
    return bool(value)


def shown(value: Any) -> str:
    """A value as a message shows it: on one line, cut if it is long; a traced value or an array by its dtype and shape."""
    if is_traced(value) or getattr(value, "ndim", 0) != 0:
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    try:
        text = " ".join(str(value).split())
    except ValueError:  # Python refuses to print integers of several thousand digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _index(value: Any) -> int | None:
    """A whole number without axes as a Python int, else None."""
    if isinstance(value, bool) or getattr(value, "ndim", 0) != 0:
        return None
    try:
        return operator.index(value.item() if _kind(value) in "iu" and hasattr(value, "item") else value)
    except TypeError:
        return None


def _kind(value: Any) -> str:
    """NumPy's letter for the kind of a dtype: i or f for Python's own numbers, V for narrow floats such as bfloat16."""
    return str(getattr(getattr(value, "dtype", None), "kind", "i" if isinstance(value, int) else "f"))


def _bounds(least: float, most: float, above: float = -math.inf, below: float = math.inf) -> str:
    """The bounds in words."""
    lower = f"at least {least}" if least > -math.inf else f"above {above}" if above > -math.inf else ""
    upper = f"at most {most}" if most < math.inf else f"below {below}" if below < math.inf else ""
    return " and ".join(filter(None, (lower, upper)))


def one_line(value: Any) -> str:
    """A value's repr for a message: on one line, cut if it is long; traced values and arrays as dtype and shape."""
    if is_traced(value) or (getattr(value, "ndim", 0) != 0 and hasattr(value, "dtype") and hasattr(value, "shape")):
        return shown(value)
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python refuses to print integers of several thousand digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
