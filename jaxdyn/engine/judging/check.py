"""The answers of a judge: checks, which compare a number with bounds, and readings, which are numbers without bounds.

A check on every run passes or fails. A check on a mean or a share over runs has the interval in which that mean or share
lies; it passes when the interval lies inside the bound, fails when it lies outside, and is undecided (``passed`` is None) when it
straddles the bound. NaN decides nothing. A gate is a check of a condition that must hold before the statement can be judged.

Measured claims have readings, which neither pass nor fail.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from jaxdyn.engine.base.jsonable import finite
from jaxdyn.errors import UsageError, shown
from jaxdyn.wording import plural

__all__ = ["BOUND_DIGITS", "VALUE_DIGITS", "Check", "Reading", "all_passed", "bound_text", "digits_apart", "holds", "ordered"]

Ends = tuple[float, float]
VALUE_DIGITS, BOUND_DIGITS, ALL_DIGITS = 4, 6, 17  # of values and of bounds in messages, and of a whole float


@dataclasses.dataclass(frozen=True)
class Check:
    """One comparison.

    Args:
        name: what is compared.
        value: the number that is compared; the worst of several.
        bound: ``(low, high)``, either of which may be infinite.
        passed: True, False, or None if the interval straddles the bound, or the value or an end of the bound is NaN.
        worst: coordinates of the worst entry.
        interval: of the value, if it is estimated from runs.
        gate: whether this is a gate: if it fails, the claim is inconclusive.
        needed: about how many runs would decide an undecided check.
        level: probability that all intervals of the check hold together, if it has any.
        trend: in words, along which field of the grid a check that does not pass comes nearer to its bound; empty if unknown.
    """

    name: str
    value: float
    bound: Ends
    passed: bool | None
    worst: dict[str, Any] = dataclasses.field(default_factory=dict)
    interval: Ends | None = None
    gate: bool = False
    needed: int | None = None
    level: float | None = None
    trend: str = ""

    def __post_init__(self) -> None:
        """Convert numbers and truth values to Python's own.

        Raises:
            UsageError: a value, bound or interval is not a number, or a lower end is above the upper one.
        """
        _normalise(self)
        object.__setattr__(self, "bound", _pair(self, "bound", self.bound))
        if hasattr(self.passed, "dtype"):
            object.__setattr__(self, "passed", _truth(self.passed))
        if not isinstance(self.passed, bool | None):
            raise UsageError(f"check {self.name!r}: passed={self.passed!r:.60} is not allowed: it is True, False or None")
        if any(map(math.isnan, (self.value, *self.bound))):
            object.__setattr__(self, "passed", None)

    def __str__(self) -> str:
        needed = f"; about {plural(self.needed, 'run')} would decide" if self.passed is None and self.needed is not None else ""
        digits = digits_apart((self.value, *(self.interval or ())), self.bound)
        trend = f"; {self.trend}" if self.trend else ""
        return f"{self.name}: {_estimate(self, digits)}, bound {bound_text(self.bound, digits)}{needed}{trend}"


@dataclasses.dataclass(frozen=True)
class Reading:
    """One result of a measured claim: a number with its interval, which neither passes nor fails.

    Args:
        name: what is measured.
        value: the number.
        interval: of the value, if it is estimated from runs.
        worst: coordinates of the entry, if it is one of several.
    """

    name: str
    value: float
    interval: Ends | None = None
    worst: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Convert numbers to Python's own.

        Raises:
            UsageError: a value or interval is not a number, or its lower end is above the upper one.
        """
        _normalise(self)

    @property
    def ends(self) -> Ends:
        """Both ends of the interval; both the value itself if it is not estimated."""
        return self.interval or (self.value, self.value)

    def estimate(self, digits: int = VALUE_DIGITS) -> str:
        """The value with its interval as text."""
        return _estimate(self, digits)

    def __str__(self) -> str:
        return f"{self.name}: {self.estimate()}"


def _normalise(one: Check | Reading) -> None:
    """Check the name, and convert value, interval and coordinates to Python's own types."""
    if not isinstance(one.name, str):
        raise UsageError(f"a {_kind(one)} is called {one.name!r:.60}: its name is a word")
    object.__setattr__(one, "value", _number(one, "value", one.value))
    if one.interval is not None:
        object.__setattr__(one, "interval", _pair(one, "interval", one.interval))
    if not isinstance(one.worst, dict):
        raise UsageError(f"{_kind(one)} {one.name!r}: worst={one.worst!r:.60} is not allowed: it is a dict of coordinates")
    object.__setattr__(one, "worst", finite(one.worst))


def _kind(one: Check | Reading) -> str:
    return type(one).__name__.lower()


def _estimate(one: Check | Reading, digits: int = VALUE_DIGITS) -> str:
    """A value with its interval as text."""
    interval = "" if one.interval is None else " [{:.{d}g}, {:.{d}g}]".format(*one.interval, d=digits)
    return f"{one.value:.{digits}g}{interval}"


def _number(one: Check | Reading, name: str, value: Any) -> float:
    """A number, or an array of one number, as Python's own."""
    try:
        if isinstance(value, str | bool | None) or np.size(value) != 1 or np.iscomplexobj(value):
            raise TypeError
        number = float(np.asarray(value).reshape(()))
        return value if type(value) in (int, float) else number
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{_kind(one)} {one.name!r}: {name}={shown(value)} is not allowed: it is a number") from None


def _pair(one: Check | Reading, name: str, value: Any) -> Ends:
    """A pair of numbers, (low, high)."""
    if not (isinstance(value, tuple | list) and len(value) == 2):
        raise UsageError(f"{_kind(one)} {one.name!r}: {name}={shown(value)} is not allowed: it is a pair of numbers, (low, high)")
    low, high = (_number(one, name, end) for end in value)
    return ordered(f"{_kind(one)} {one.name!r}", name, (low, high))


def ordered(what: str, name: str, pair: Ends) -> Ends:
    """A pair whose lower end comes first; nothing could lie within any other.

    Raises:
        UsageError: the lower end is above the upper one.
    """
    if pair[0] > pair[1]:
        raise UsageError(f"{what}: {name}={(float(pair[0]), float(pair[1]))!r} is not allowed: the lower end comes first")
    return pair


def _truth(value: Any) -> Any:
    return bool(value) if np.size(value) == 1 and np.asarray(value).dtype == bool else value


def all_passed(checks: Iterable[Check]) -> bool | None:
    """Whether all checks pass, gates aside: False if one fails, else None if one is undecided."""
    outcomes = [c.passed for c in checks if not c.gate]
    return False if False in outcomes else None if None in outcomes else True


def holds(bound: Ends, value: float) -> bool | None:
    """Whether a number lies within a bound; None if any of them is NaN."""
    return None if any(map(math.isnan, (value, *bound))) else bound[0] <= value <= bound[1]


def bound_text(bound: tuple[float | None, float | None], digits: int = BOUND_DIGITS) -> str:
    """A bound in words: an interval, or one side of it; None is infinite."""
    low, high = (f"{end:.{max(digits, BOUND_DIGITS)}g}" for end in _infinite(bound))
    if _infinite(bound) == (-math.inf, math.inf):
        return "none"
    if _infinite(bound)[1] == math.inf:
        return f"at least {low}"
    return f"at most {high}" if _infinite(bound)[0] == -math.inf else f"{low} to {high}"


def digits_apart(values: Any, bound: tuple[float | None, float | None]) -> int:
    """The fewest digits, four or more, with which values are seen to lie on the side of a bound's ends on which they do.

    Args:
        values: a number, or a value and the ends of its interval; what is no finite number needs no digits.
        bound: ``(low, high)``; None is infinite.
    """
    each = [
        v for v in (values if isinstance(values, tuple | list) else (values,)) if isinstance(v, int | float) and math.isfinite(v)
    ]
    ends = [end for end in _infinite(bound) if math.isfinite(end)]

    def told_apart(digits: int) -> bool:
        pairs = ((float(f"{v:.{digits}g}"), float(f"{e:.{max(digits, BOUND_DIGITS)}g}"), v, e) for v in each for e in ends)
        return all((at > near) - (at < near) == (v > e) - (v < e) for at, near, v, e in pairs)

    return next((digits for digits in range(VALUE_DIGITS, ALL_DIGITS) if told_apart(digits)), ALL_DIGITS)


def _infinite(bound: tuple[float | None, float | None]) -> Ends:
    low, high = bound
    return -math.inf if low is None else low, math.inf if high is None else high
