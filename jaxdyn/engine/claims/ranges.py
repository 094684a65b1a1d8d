"""Ranges of a setting's numbers: ``lr: jd.Swept = jd.field(0.01, above=0)``."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jaxdyn.errors import UsageError

__all__ = ["Range", "field"]

HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "above": operator.gt,
    "at_least": operator.ge,
    "below": operator.lt,
    "at_most": operator.le,
}


@dataclasses.dataclass(frozen=True)
class Range:
    """The allowed range of a number, by one or two bounds; a tuple is in the range if all its entries are.

    Args:
        bounds: ``above`` or ``at_least``, ``below`` or ``at_most``, each with its number, the lower one first.
    """

    bounds: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        """The range in words: ``above 0 and at most 1``."""
        return " and ".join(f"{word.replace('_', ' ')} {bound}" for word, bound in self.bounds)

    def as_dict(self) -> dict[str, float]:
        """The bounds by name, as written to JSON."""
        return dict(self.bounds)

    def refuse(self, name: str, value: Any) -> None:
        """Refuse a Python or NumPy number outside the range; tracers, placeholders and None are accepted.

        Raises:
            UsageError: ``name=value is not allowed: name is above 0``.
        """
        one = "every entry of " if isinstance(value, tuple | list) else ""
        for entry in _entries(value):
            if isinstance(entry, bool | np.bool_ | str):
                raise UsageError(f"{name}={value} is not allowed: {one}{name} is a number")
            if isinstance(entry, int | float | np.number) and not all(HOLDS[word](entry, bound) for word, bound in self.bounds):
                raise UsageError(f"{name}={value} is not allowed: {one}{name} is {self}")


def _entries(value: Any) -> list[Any]:
    """All numbers of a value: a single number, or the numbers of a nested tuple."""
    return [e for part in value for e in _entries(part)] if isinstance(value, tuple | list) else [value]


def field(
    default: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> Any:
    """A number, or a tuple of numbers, with a range: ``share: jd.Swept = jd.field(0.5, at_least=0, below=1)``.

    A setting refuses values outside the range when it is made, in grids and on the command line. :func:`jaxdyn.require` in
    ``__post_init__``, which runs afterwards, checks relations between fields.

    Args:
        default: the field's default, inside the range; None is allowed if the field's type allows it.
        above: the number is greater than this.
        at_least: the number is this or more.
        below: the number is less than this.
        at_most: the number is this or less.

    Raises:
        UsageError: there is no bound, two lower or two upper ones, or no number satisfies them.
    """
    given = {"above": above, "at_least": at_least, "below": below, "at_most": at_most}
    bounds = {word: bound for word, bound in given.items() if bound is not None}
    _refuse_bounds(bounds)
    return dataclasses.field(default=default, metadata={"range": Range(tuple(bounds.items()))})


def _refuse_bounds(bounds: Mapping[str, float]) -> None:
    """Refuse bounds that do not make a range."""
    if not bounds:
        raise UsageError(
            "jd.field needs a bound (above, at_least, below or at_most); a field without one is written x: jd.Swept = 1.0"
        )
    if bounds.keys() >= {"above", "at_least"} or bounds.keys() >= {"below", "at_most"}:
        raise UsageError(f"jd.field takes one lower and one upper bound, got {', '.join(bounds)}")
    if not all(isinstance(b, int | float) and math.isfinite(b) for b in bounds.values()):
        raise UsageError(f"the bounds of jd.field are finite numbers, got {', '.join(map(str, bounds.values()))}")
    if len(bounds) == 2:
        low, high = bounds.values()
        if low > high or (low == high and bounds.keys() != {"at_least", "at_most"}):
            raise UsageError(f"no number is {Range(tuple(bounds.items()))}")
