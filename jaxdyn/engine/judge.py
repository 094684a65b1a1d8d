"""Checks: what a judge returns. Each compares one number with one bound, and knows the worst run behind it."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Check", "at_least", "at_most", "relative_error", "within"]


@dataclasses.dataclass(frozen=True)
class Check:
    """One comparison: ``value`` against ``bound`` (a number, or ``(low, high)``); ``worst`` tells the worst run's coordinates."""

    name: str
    value: float
    bound: float | tuple[float, float]
    passed: bool
    worst: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}: {self.value:.4g}, bound {bound_text(self.bound)}"


def bound_text(bound: float | tuple[float, float]) -> str:
    """A bound in words: one number, or an interval."""
    return f"{bound[0]:.6g} to {bound[1]:.6g}" if isinstance(bound, tuple | list) else f"{bound:.6g}"


def plain(value: Any) -> Any:
    """A NumPy scalar as a Python value; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def _pick(values: Any, badness: Any) -> tuple[float, dict[str, Any]]:
    """The entry with the largest badness and its coordinates; runs that are not ok (NaN) are passed over."""
    array, bad = np.asarray(values, float), np.asarray(badness, float)
    if array.size == 0 or np.all(np.isnan(bad)):
        return math.nan, {}
    index = np.unravel_index(np.nanargmax(bad), bad.shape)
    worst = {}
    for dim, i in zip(getattr(values, "dims", ()), index, strict=False):
        worst[dim] = plain(values.coords[dim].values[i]) if dim in values.coords else int(i)
    return float(array[index]), worst


def at_most(name: str, value: float | xr.DataArray, bound: float) -> Check:
    """Passes when every entry of ``value`` is <= bound (and at least one is a number)."""
    number, worst = _pick(value, value)
    return Check(name, number, float(bound), bool(number <= bound), worst)


def at_least(name: str, value: float | xr.DataArray, bound: float) -> Check:
    """Passes when every entry of ``value`` is >= bound (and at least one is a number)."""
    number, worst = _pick(value, -value)
    return Check(name, number, float(bound), bool(number >= bound), worst)


def within(name: str, value: float | xr.DataArray, low: float, high: float) -> Check:
    """Passes when every entry of ``value`` lies in [low, high] (and at least one is a number)."""
    number, worst = _pick(value, np.maximum(low - value, value - high))
    return Check(name, number, (float(low), float(high)), bool(low <= number <= high), worst)


def relative_error(ds: xr.Dataset, name: str, dims: str | tuple[str, ...] = ()) -> xr.DataArray:
    """``‖measured − predicted‖ / ‖predicted‖`` over ``dims`` (elementwise when empty)."""
    predicted, measured = ds[f"predicted_{name}"], ds[f"measured_{name}"]
    over = dims.split() if isinstance(dims, str) else list(dims)
    error, size = (measured - predicted) ** 2, predicted**2
    if over:  # NaN is a run that is not ok, or ragged padding: skipna keeps padding out, min_count keeps such runs NaN
        error, size = error.sum(over, skipna=True, min_count=1), size.sum(over, skipna=True, min_count=1)
    return (error / size) ** 0.5
