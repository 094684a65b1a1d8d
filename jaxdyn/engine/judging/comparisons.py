"""Functions that make checks and readings: of every run, of means and shares over runs, and of other intervals."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxdyn import stats
from jaxdyn.engine.judging.check import Check, Reading, holds, ordered
from jaxdyn.engine.judging.estimate import Ends, Estimate, excess, student, wilson, worst_entry
from jaxdyn.engine.judging.judged_runs import axes_of_settings, first_place, only_judged, undefined_place
from jaxdyn.errors import Inconclusive, UsageError, number, shown

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "at_least",
    "at_most",
    "by_axis",
    "gate",
    "interval_within",
    "mean_reading",
    "mean_within",
    "relative_error",
    "rms_within",
    "share_reading",
    "share_within",
    "within",
]

TINY = 1e-200  # smallest sum of squares that is taken as it is
EXACT = 2**53  # floats represent all whole numbers up to this
BLOCK = 2**18  # numbers that are compared at a time
LEVEL = 0.997  # default probability that all intervals of one check hold together


def _floats(name: str, value: Any) -> Any:
    """Numbers or truth values as floats, so that differences of unsigned and of short whole numbers do not wrap.

    They are NaN where no run is judged (:func:`jaxdyn.engine.judging.judged_runs.only_judged`).

    Raises:
        UsageError: they are anything else, such as complex numbers, which have no order.
    """
    kind = getattr(value, "dtype", None) or np.asarray(value).dtype
    if kind.kind not in "biuf":
        hint = "; compare their size, abs(...)" if kind.kind == "c" else ""
        raise UsageError(f"check {name!r}: values of dtype {kind} are not allowed: they are real numbers{hint}")
    return only_judged(value.astype(float, copy=False) if hasattr(value, "astype") else np.asarray(value, float))


def _refuse_inexact(name: str, value: Any, bounds: tuple[float, float]) -> None:
    """Refuse whole numbers and a bound that are both beyond 2**53, where several whole numbers become one float."""
    if any(EXACT <= abs(bound) < math.inf for bound in bounds) and np.asarray(value).dtype.kind in "iu":
        raise UsageError(
            f"check {name!r}: whole numbers are not compared with bounds beyond 2**53, where floats do not tell them apart"
        )


def _bound(name: str, bound: Any) -> float:
    """A bound as one float."""
    try:
        if isinstance(bound, str | None) or np.ndim(bound):
            raise TypeError
        return float(bound)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"check {name!r}: the bound {shown(bound)} is not allowed: it is one number") from None


def _level(level: float) -> float:
    checked: float = number("level", level, above=0, below=1)
    return checked


def at_most(name: str, value: float | stats.Labelled, bound: float) -> Check:
    """Passes when every entry of ``value`` is <= bound (and at least one is a number)."""
    return _decided(name, value, (-math.inf, _bound(name, bound)), lambda value: value)


def at_least(name: str, value: float | stats.Labelled, bound: float) -> Check:
    """Passes when every entry of ``value`` is >= bound (and at least one is a number)."""
    return _decided(name, value, (_bound(name, bound), math.inf), lambda value: -value)


def within(name: str, value: float | stats.Labelled, low: float, high: float) -> Check:
    """Passes when every entry of ``value`` lies in [low, high] (and at least one is a number)."""
    low, high = ordered(f"check {name!r}", "bound", (_bound(name, low), _bound(name, high)))
    return _decided(name, value, (low, high), lambda value: excess(value, value, low, high))


def _decided(name: str, value: Any, bound: tuple[float, float], badness: Callable[[Any], Any]) -> Check:
    """The check of every entry, by the worst one; if none fails, by an undefined place (:func:`undefined_place`)."""
    given, value = value, _floats(name, value)
    _refuse_inexact(name, given, bound)
    worst_value, worst = worst_entry(value, badness(value))
    passed = holds(bound, worst_value)
    if passed and (place := undefined_place(value)) is not None:
        return Check(name, math.nan, bound, None, place)
    return Check(name, worst_value, bound, passed, worst)


def gate(name: str, value: float | stats.Labelled, *, at_least: float | None = None, at_most: float | None = None) -> Check:
    """A condition on every run for the statement to be judged: trained, generalised, converged, within the regime.

    A claim whose gate fails is inconclusive, never refuted. Gates are ignored on controls, rivals and distorted data.

    Raises:
        UsageError: no bound is given.
    """
    low, high = _bounds(name, at_least, at_most)
    return dataclasses.replace(within(name, value, low, high), gate=True)


def _bounds(name: str, low: float | None, high: float | None) -> tuple[float, float]:
    if low is None and high is None:
        raise UsageError(f"{name}: give a lower bound, an upper bound, or both")
    ends = -math.inf if low is None else _bound(name, low), math.inf if high is None else _bound(name, high)
    return ordered(f"check {name!r}", "bound", ends)


def interval_within(
    name: str,
    value: float | stats.Labelled,
    interval: Ends,
    *,
    level: float,
    low: float | None = None,
    high: float | None = None,
    runs: Any = None,
) -> Check:
    """Whether an estimate lies in [low, high], judged by its interval: inside passes, outside fails, straddling is undecided.

    ``jd.interval_within("median", median, lambda level: (low_end(level), high_end(level)), level=0.997, low=0.9)``

    Args:
        name: what is estimated.
        value: the estimate, or an array of estimates, each of which must lie inside.
        interval: function of a level that returns the lower and the upper ends, shaped as ``value``, of intervals that hold
            together with that probability; one that leaves the estimate out is widened up to it. It is called with ``level``, and
            with levels closer to 1 if a claim may be judged again on more seeds.
        level: probability that all the intervals hold together.
        low: lower bound; None: none.
        high: upper bound; None: none.
        runs: number of runs behind the estimate, to say how many would decide.

    Raises:
        UsageError: no bound is given, or the interval is not a function.
    """
    if not callable(interval):
        raise UsageError(f"check {name!r}: interval={shown(interval)} is not allowed: it is a function of the level")
    bounds, value = _bounds(name, low, high), _floats(name, value)

    def around(level: float) -> tuple[Any, Any]:
        below, above = interval(level)
        ordered_ends = np.asarray(below) <= np.asarray(above)  # reversed ones are refused as they are
        return np.where(ordered_ends, np.fmin(below, value), below), np.where(ordered_ends, np.fmax(above, value), above)

    return Estimate(value, around, bounds, runs, undefined=undefined_place(value)).check(name, _level(level))


def mean_within(
    name: str,
    values: stats.Labelled,
    *,
    over: str | Sequence[Hashable],
    low: float | None = None,
    high: float | None = None,
    level: float = LEVEL,
) -> Check:
    """Whether the mean over runs lies in [low, high], judged by its Student t interval.

    Runs of one seed at several settings are not independent. So the mean over the axes of settings among ``over`` is taken first,
    which leaves one number for each seed. Runs that are not judged are left out.

    Args:
        name: what is averaged.
        values: one number per run; every other axis holds further means, for all of which the intervals are widened (Bonferroni).
        over: the axes of the runs.
        low: lower bound; None: none.
        high: upper bound; None: none.
        level: probability that all intervals hold together.

    Raises:
        Inconclusive: fewer than two runs.
    """
    bounds, (mean, ends, runs, undefined) = _bounds(name, low, high), _means(name, values, over)
    return Estimate(mean, ends, bounds, runs, undefined=undefined).check(name, _level(level))


def _means(name: str, values: xr.DataArray, over: str | Sequence[Hashable]) -> tuple[Any, Ends, Any, dict[str, Any] | None]:
    """Means over runs with their intervals, the number of independent runs, and the place of an undefined number."""
    undefined = undefined_place(values)
    values, over, lost = _by_seed(name, _floats(name, values), over)
    numbers = values.variable  # without coordinates, which only name the worst entry and take most of the time
    runs = numbers.count(over)
    if values.size == 0 or int(runs.min()) < 2:
        given, have = math.prod(numbers.sizes[axis] for axis in over), int(runs.min()) if values.size else 0
        without = f" with a number, here {have} of {given}; the others are NaN, not judged or without a value (as 0/0)"
        raise Inconclusive(f"{name}: the interval of a mean needs at least two runs{without if given > 1 else ''}")
    numbers, unit = _scaled(numbers, over)
    mean, deviation = numbers.mean(over) * unit, numbers.std(over, ddof=1) * unit
    labelled = _labelled(mean, values)
    lost = lost if lost is not None else first_place(labelled.isnull())  # all have runs: the difference of infinite numbers
    return labelled, functools.partial(student, mean, deviation, runs), runs, undefined if undefined is not None else lost


def _scaled(numbers: xr.Variable, over: list[Hashable]) -> tuple[xr.Variable, xr.Variable]:
    """The numbers over a power of two, so that squares along the axes neither overflow nor vanish, and this power."""
    import xarray as xr

    axes = numbers.get_axis_num(over)
    unit = np.squeeze(stats.binade(numbers.values, axes), axes)
    if numbers.dtype.kind == "f":
        unit = unit.astype(numbers.dtype)
    power = xr.Variable([dim for dim in numbers.dims if dim not in over], unit)
    return numbers / power, power


def _by_seed(
    name: str, values: xr.DataArray, over: str | Sequence[Hashable]
) -> tuple[xr.DataArray, list[Hashable], dict[str, Any] | None]:
    """The mean over the axes of settings among ``over``, one number for each seed; and the other axes of ``over``.

    Last comes the place of a mean that is undefined although it has runs, as of two infinite numbers; None if there is none.
    """
    over = [over] if isinstance(over, str) else list(over)
    if missing := [axis for axis in over if axis not in values.dims]:
        there = ", ".join(map(str, values.dims)) or "none"
        raise UsageError(f"check {name!r}: over={missing[0]!r} is not allowed: the values have the axes {there}")
    settings = [axis for axis in axes_of_settings(values) if axis in over] if "seed" in over else []
    if not settings:
        return values, over, None
    mean = _labelled(values.variable.mean(settings), values)
    lost = mean.isnull()
    place = first_place(lost & (values.variable.count(settings) > 0)) if bool(lost.any()) else None
    return mean, [axis for axis in over if axis not in settings], place


def rms_within(name: str, squares: stats.Labelled, *, over: str | Sequence[Hashable], high: float, level: float = LEVEL) -> Check:
    r"""Whether a root mean square over runs is at most ``high``, judged by the Student t interval of its square.

    The squares may be unbiased estimates, :math:`(x - y)^2 - s^2` where ``s`` is the standard error of x - y: this removes the
    sampling error, and an estimate may be negative. Value and interval are signed roots, :math:`\pm\sqrt{|m|}`.

    Args:
        name: what is bounded.
        squares: one number per run, preferably a mean over several entries; other axes as in :func:`mean_within`.
        over: the axes of the runs.
        high: upper bound of the root.
        level: probability that all intervals hold together.

    Raises:
        Inconclusive: fewer than two runs.
    """
    mean, ends, runs, undefined = _means(name, squares, over)
    bounds = -math.inf, _bound(name, high)
    return Estimate(mean, ends, bounds, runs, root=True, undefined=undefined).check(name, _level(level))


def share_within(
    name: str,
    flags: stats.Labelled,
    *,
    over: str | Sequence[Hashable],
    low: float | None = None,
    high: float | None = None,
    level: float = LEVEL,
) -> Check:
    """Whether the share of runs for which something is true lies in [low, high], judged by Wilson's interval.

    Args:
        name: what is counted.
        flags: truth values. Those of runs that are not judged are left out, unless they are of ``ds.status`` itself. The flag of a
            judged run that has no number to compare must be NaN: ``(ds.x > 1).where(ds.x.notnull())``. Every other axis holds
            further shares, as in :func:`mean_within`.
        over: the axes of the runs.
        low: lower bound; None: none.
        high: upper bound; None: none.
        level: probability that all intervals hold together.

    Raises:
        Inconclusive: there is no run.
    """
    bounds, (share, ends, runs, undefined) = _bounds(name, low, high), _shares(name, flags, over)
    return Estimate(share, ends, bounds, runs, undefined=undefined).check(name, _level(level))


def _shares(name: str, flags: xr.DataArray, over: str | Sequence[Hashable]) -> tuple[Any, Ends, Any, dict[str, Any] | None]:
    """Shares of runs with their intervals, the number of independent runs, and the place of an undefined number."""
    flags = _floats(name, flags)
    undefined = undefined_place(flags)
    if not bool(flags.isin((0, 1)).where(flags.notnull(), True).all()):
        raise UsageError(f"check {name!r}: a share is of truth values: 0, 1, or NaN where a run is not ok")
    flags, over, _ = _by_seed(name, flags, over)
    runs, hits = flags.count(over), flags.sum(over)
    if flags.size == 0 or int(runs.min()) < 1:
        raise Inconclusive(f"{name}: a share needs at least one run")
    return hits / runs, functools.partial(wilson, hits.values, runs.values), runs, undefined


def mean_reading(name: str, values: stats.Labelled, *, over: str | Sequence[Hashable], level: float = LEVEL) -> Reading:
    """The mean over runs with its Student t interval, as in :func:`mean_within`; one number.

    Raises:
        Inconclusive: fewer than two runs.
        UsageError: the values have axes besides those of the runs.
    """
    mean, ends, _, undefined = _means(name, values, over)
    return _reading(name, mean, ends(level), undefined)


def share_reading(name: str, flags: stats.Labelled, *, over: str | Sequence[Hashable], level: float = LEVEL) -> Reading:
    """The share of runs for which something is true with Wilson's interval, as in :func:`share_within`; one number.

    Raises:
        Inconclusive: there is no run.
        UsageError: the values have axes besides those of the runs.
    """
    share, ends, _, undefined = _shares(name, flags, over)
    return _reading(name, share, ends(level), undefined)


def _reading(name: str, value: Any, ends: tuple[Any, Any], undefined: dict[str, Any] | None) -> Reading:
    if value.size != 1:
        raise UsageError(f"reading {name!r}: it is one number; there is one for each entry of {', '.join(map(str, value.dims))}")
    if undefined is not None:
        return Reading(name, math.nan, (math.nan, math.nan), undefined)
    one, low, high = (np.asarray(part).item() for part in (value, *ends))  # a cell by itself has axes of length 1
    return Reading(name, one, (low, high))


def relative_error(ds: xr.Dataset, name: str, dims: str | tuple[str, ...] = ()) -> xr.DataArray:
    """``‖measured − predicted‖ / ‖predicted‖`` over ``dims`` (elementwise when empty).

    For a control or rival (``ds.attrs["opponent"]``, set by the engine) the denominator is ``‖measured‖``, so that a theory in
    which nothing happens is not refuted by a division by zero. Entries where either array is NaN, such as the padding of ragged
    ones, are in neither norm.

    Raises:
        UsageError: neither array has one of the axes.
    """
    unit = "measured" if ds.attrs.get("opponent") else "predicted"
    over = dims.split() if isinstance(dims, str) else list(dims)
    arrays = ds[f"predicted_{name}"], ds[f"measured_{name}"]
    there = {dim: None for array in arrays for dim in array.dims}
    if missing := [dim for dim in over if dim not in there]:
        axes = ", ".join(map(str, there)) or "none"
        raise UsageError(
            f"the relative error of {name} is not over {missing[0]}: predicted and measured values have the axes {axes}"
        )

    def error(predicted: xr.Variable, measured: xr.Variable) -> xr.Variable:
        predicted, measured = (array.astype(np.result_type(array.dtype, np.float64), copy=False) for array in (predicted, measured))
        distance, size = abs(measured - predicted), abs(measured if unit == "measured" else predicted)
        distance = _infinite(distance, predicted, measured)
        size = _compared(size, distance)
        ratio = (_norm(distance, over) / _norm(size, over)) if over else distance / size
        if unit == "predicted" and np.isnan(ratio.values).any():  # infinitely far from an infinite prediction
            far = np.isinf(_norm(distance, over).values if over else distance.values)
            ratio = ratio.copy(data=np.where(np.isnan(ratio.values) & far, np.inf, ratio.values))
        return ratio

    def in_blocks(predicted: xr.Variable, measured: xr.Variable) -> xr.Variable:
        return _in_blocks(error, predicted, measured, over)

    return by_axis(in_blocks, *arrays)


def _infinite(distance: xr.Variable, predicted: xr.Variable, measured: xr.Variable) -> xr.Variable:
    """Distances, infinite where that of two infinite numbers is undefined; NaN stays where one of the two is NaN."""
    if not np.isnan(distance.values.sum()):
        return distance
    padding = (predicted.isnull() | measured.isnull()).transpose(*distance.dims)
    return distance.copy(data=np.where(np.isnan(distance.values) & ~padding.values, np.inf, distance.values))


def _compared(size: xr.Variable, distance: xr.Variable) -> xr.Variable:
    """The sizes of the entries that have a distance: NaN elsewhere, so that both norms are over the same entries."""
    undefined = np.isnan(distance.values)
    if set(size.dims) == set(distance.dims) and not undefined.any():
        return size
    every: xr.Variable = size.set_dims(distance.sizes).transpose(*distance.dims)
    return every.copy(data=np.where(undefined, np.nan, every.values))


def _in_blocks(function: Callable[..., xr.Variable], predicted: xr.Variable, measured: xr.Variable, over: list[str]) -> xr.Variable:
    """``function`` of both arrays, applied to blocks along an axis: blocks that fit into the cache take half the time.

    The axis is the longest one before those in ``over``, so that sums over these keep their terms and order.
    """
    import xarray as xr

    axes = [dim for dim in itertools.takewhile(lambda dim: dim not in over, measured.dims) if dim in predicted.dims]
    if not axes or measured.size <= BLOCK:
        return function(predicted, measured)
    axis = max(axes, key=measured.sizes.__getitem__)
    length = max(1, BLOCK * measured.sizes[axis] // measured.size)
    parts = [slice(i, i + length) for i in range(0, measured.sizes[axis], length)]
    blocks = [function(predicted.isel({axis: part}), measured.isel({axis: part})) for part in parts]
    joined: xr.Variable = xr.Variable.concat(blocks, axis)
    return joined


def _norm(sizes: xr.Variable, over: list[str]) -> xr.Variable:
    """The root of the sum of squares, scaled by a power of two near the largest size, so that no square overflows or vanishes.

    NaN (runs that are not ok, padding of ragged arrays) is left out; a norm without any number is NaN.
    """
    import xarray as xr

    array, axes = sizes.values, sizes.get_axis_num(over)
    dims = [dim for dim in sizes.dims if dim not in over]
    with np.errstate(over="ignore", under="ignore"):
        plain = np.square(array).sum(axes)
    if ((plain > TINY) & (plain < 1 / TINY)).all():  # where no square is near an end of the range, scaling changes no bit
        return xr.Variable(dims, plain**0.5)
    largest = np.fmax.reduce(array, axes, keepdims=True)
    unit = stats.binade(largest, ())
    squares = array / unit
    np.square(squares, out=squares)
    total = squares.sum(axes, keepdims=True)
    if np.isnan(total).any():
        squares[np.isnan(squares)] = 0.0
        total = np.where(np.isnan(largest), np.nan, squares.sum(axes, keepdims=True))
    return xr.Variable(dims, np.squeeze(unit * total**0.5, axes))


def by_axis(function: Callable[..., xr.Variable], *arrays: xr.DataArray) -> xr.DataArray:
    """``function`` of the arrays without their coordinates, which the result gets back.

    Arrays of one Dataset have the same coordinates; aligning them in every operation would take most of a judge's time.
    """
    return _labelled(function(*(array.variable for array in arrays)), *arrays)


def _labelled(values: xr.Variable, *sources: xr.DataArray) -> xr.DataArray:
    """Values with the coordinates of their axes, taken from the arrays from which they were computed."""
    import xarray as xr

    coords: dict[Any, Any] = {}
    indexes: dict[Any, Any] = {}  # existing ones: making them anew takes longer than the numbers
    for source in sources:
        coords |= {name: c for name, c in source.coords.variables.items() if set(c.dims) <= set(values.dims)}
        indexes |= {name: index for name, index in source.xindexes.items() if name in coords}
    return xr.DataArray(values, xr.Coordinates(coords, indexes))
