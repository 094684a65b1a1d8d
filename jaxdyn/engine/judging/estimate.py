r"""Estimates from runs, and checks that their intervals decide at any level.

A judge depends on its Dataset alone: its checks of means and shares have intervals at the level that the judge asks for. Such a
check is an :class:`Estimated` with an :class:`Estimate`, which gives the interval at any other level. The engine decides it again
at the level of the look (:class:`Look`), which gives a plain check.

A claim may be judged again after seeds were added; all its looks together spend at most the allowed error. A judgement on :math:`n`
seeds of a claim that began with :math:`n_1` is look :math:`k = 1 + \lceil \log_2(n / n_1) \rceil` and spends :math:`2^{-k}` of the
error that the claim's intervals are allowed (Bonferroni over looks).
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from jaxdyn import stats
from jaxdyn.engine.judging.check import Check, ordered

if TYPE_CHECKING:
    import xarray as xr

    from jaxdyn.engine.claims.claim import Judge

__all__ = [
    *("Ends", "Estimate", "Estimated", "Look", "coordinates", "excess", "look", "python_value", "spent", "student", "wilson"),
    "worst_entry",
]

SMALLEST = 5e-324  # the smallest number above zero
Ends: TypeAlias = "Callable[[float], tuple[Any, Any]]"  # level -> lower ends, upper ends


def student(mean: Any, deviation: Any, runs: Any, level: float) -> tuple[Any, Any]:
    """Student's intervals of several means that hold together (Bonferroni), from their standard deviations and numbers of runs."""
    half = stats.bonferroni_t(runs.size, runs.values, level) * deviation / np.sqrt(runs.values)
    return mean - half, mean + half


def wilson(hits: Any, runs: Any, level: float) -> tuple[Any, Any]:
    """Wilson's intervals of several shares that hold together (Bonferroni), from their hits and numbers of runs."""
    low, high = stats.wilson_ends(hits, runs, 1 - (1 - level) / runs.size)
    return low, high


@dataclasses.dataclass(frozen=True)
class Estimate:
    """An estimate, its intervals at any level, and the bound with which a check compares them.

    Args:
        value: the estimate, or an array of estimates, each of which must lie within the bound.
        ends: function of a level that returns their intervals: ``functools.partial`` of :func:`student` or :func:`wilson`, or a
            judge's own.
        bound: ``(low, high)``, either of which may be infinite.
        runs: number of runs behind each estimate, to say how many would decide.
        root: whether the estimates are squares of what is bounded; the check shows their signed roots.
        undefined: the place of a number that is undefined although there are runs, so that the check does not pass; None: none.
    """

    value: Any
    ends: Ends
    bound: tuple[float, float]
    runs: Any = None
    root: bool = False
    undefined: dict[str, Any] | None = None

    def check(self, name: str, level: float) -> Estimated:
        """The check at a level: fails if an interval lies outside the bound, passes if all lie inside, else is undecided."""
        parts = _parts(self._decided(name, level)) | {"bound": self.bound}
        if self.root:
            ends = parts["interval"]
            parts |= {"value": _root(parts["value"]), "interval": ends and (_root(ends[0]), _root(ends[1]))}
        return Estimated(**parts, estimate=self)

    def _decided(self, name: str, level: float) -> Check:
        """The check before roots are taken."""
        low, high = limits = (_square(self.bound[0]), _square(self.bound[1])) if self.root else self.bound
        value = np.asarray(self.value)
        below, above = _ends(value, *self.ends(level))
        if (reversed_ends := below > above).any():
            at = np.unravel_index(reversed_ends.argmax(), below.shape)
            ordered(f"check {name!r}", "interval", (float(below[at]), float(above[at])))
        sure = np.where(np.isinf(value), value, below), np.where(np.isinf(value), value, above)  # an infinite one can only fail
        possible, certain = excess(below, above, low, high), excess(sure[1], sure[0], low, high)
        number, worst = worst_entry(self.value, possible)
        if math.isnan(number):
            return Check(name, number, limits, None, level=level)
        if np.nanmax(certain) > 0:  # an interval lies outside
            at = np.unravel_index(np.nanargmax(certain), below.shape)
            number, worst = worst_entry(self.value, certain)
            return Check(name, number, limits, False, worst, (float(sure[0][at]), float(sure[1][at])), level=level)
        if self.undefined is not None:
            return Check(name, math.nan, limits, None, self.undefined, level=level)
        # the interval that reaches farthest lies inside, or is undecided
        at = np.unravel_index(np.nanargmax(possible), below.shape)
        ends = float(below[at]), float(above[at])
        if low <= ends[0] and ends[1] <= high:
            return Check(name, number, limits, True, worst, ends, level=level)
        count = None if self.runs is None else float(np.broadcast_to(np.asarray(self.runs, float), below.shape)[at])
        needed = _needed(number, ends, limits, count)
        return Check(name, number, limits, None, worst, ends, needed=needed, level=level)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Estimated(Check):
    """A check with the estimate that gives its interval at any other level."""

    estimate: Estimate = dataclasses.field(repr=False, compare=False)

    def at(self, share: float) -> Check:
        """This check as a plain one that spends the given share of the allowed error."""
        assert self.level is not None, "an interval has a level"
        again = self if share == 1 else self.estimate.check(self.name, 1 - (1 - self.level) * share)
        return Check(**_parts(again) | {"gate": self.gate})


def _parts(check: Check) -> dict[str, Any]:
    """The fields of a plain check."""
    return {field.name: getattr(check, field.name) for field in dataclasses.fields(Check)}


def worst_entry(values: Any, badness: Any) -> tuple[float, dict[str, Any]]:
    """The entry with the largest badness and its coordinates; NaN (runs that are not ok, padding) is ignored."""
    array, bad = np.asarray(values, float), np.asarray(badness, float)
    if array.size == 0 or np.all(np.isnan(bad)):
        return math.nan, {}
    index = np.unravel_index(np.nanargmax(bad), bad.shape)
    return float(array[index]), coordinates(values, index)


def coordinates(values: Any, index: Any) -> dict[str, Any]:
    """The coordinates of an entry; places along axes without any; none for plain arrays."""
    named = {}
    for dim, i in zip(getattr(values, "dims", ()), index, strict=False):
        named[dim] = python_value(values.coords[dim].values[i]) if dim in values.coords else int(i)
    return named


def python_value(value: Any) -> Any:
    """A NumPy scalar as a Python value; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def excess(lowest: Any, highest: Any, low: float, high: float) -> Any:
    """How far numbers lie below ``low`` or above ``high``, negative between; infinite bounds are ignored."""
    below = low - lowest if math.isfinite(low) else np.where(np.isnan(lowest), np.nan, -np.inf)
    above = highest - high if math.isfinite(high) else np.where(np.isnan(highest), np.nan, -np.inf)
    return np.maximum(below, above)


def _ends(value: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Both ends for every estimate: infinite for an infinite one, which has no interval, and for any other without an interval."""
    below, above = (np.broadcast_to(np.asarray(end, float), value.shape) for end in (low, high))
    unknown = np.isinf(value) | ~np.isnan(value) & (np.isnan(below) | np.isnan(above))
    return np.where(unknown, -np.inf, below), np.where(unknown, np.inf, above)


def _needed(value: float, ends: tuple[float, float], bounds: tuple[float, float], runs: float | None) -> int | None:
    """Number of runs with which the interval, which narrows with their square root, would lie on one side of the bound."""
    distance = min((abs(value - b) for b in bounds if math.isfinite(b)), default=0.0)
    half = max(ends[1] - value, value - ends[0])
    if runs is None or distance == 0 or not math.isfinite(half):
        return None
    ratio = half / distance
    count = runs * (ratio * ratio)
    return math.ceil(count) if math.isfinite(count) else None


def _square(root: float) -> float:
    """The signed square of a bound; of a finite one it is finite, and zero for zero alone, so that it stays a bound."""
    if root == 0 or math.isinf(root):
        return root
    return math.copysign(min(max(root * root, SMALLEST), sys.float_info.max), root)


def _root(square: float) -> float:
    return math.copysign(math.sqrt(abs(square)), square)


# looks


def look(seeds: int, first: int) -> int:
    """Number of the look of a judgement on ``seeds`` seeds, for a claim that began with ``first``; 1 up to that number."""
    return 1 + max(0, math.ceil(math.log2(seeds / first)))


def spent(number: int) -> float:
    r"""Share of the allowed error that a look spends, :math:`2^{-k}`."""
    return 2.0**-number


@dataclasses.dataclass(frozen=True)
class Look:
    """A judge whose intervals spend a share of the allowed error."""

    judge: Judge
    share: float

    def __call__(self, ds: xr.Dataset) -> Any:
        """The judge's answers at the level of this look; anything but a list is returned as it is, for the caller to refuse."""
        answers: Any = self.judge(ds)
        if not isinstance(answers, list | tuple):
            return answers
        return [answer.at(self.share) if isinstance(answer, Estimated) else answer for answer in answers]
