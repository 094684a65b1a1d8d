"""What a judge's answers rest on, found by asking the judge again on changed data: what must not decide them, and which cells.

The functions that make checks know which runs are judged and which are undefined
(:mod:`jaxdyn.engine.judging.judged_runs`). A judge's own reductions do not: most of them skip NaN, so that a run without a number
no longer counts, and a comparison with NaN is false, so that a run that is not judged counts as one in which something does not
happen.

- *Undefined numbers.* An observable that has no number in a judged run could be anything there. The judge is asked again with
  infinity, and with minus infinity, in these places. What no longer passes, or no longer fails, was not decided by the data.
- *Runs that are not judged.* How many there are must not matter. The judge is asked again with more of them: as many further seeds
  as there are, all NaN. A value that changes counts them. The judge is asked on cells that have such runs already, so that it
  meets nothing new. Values that change with the status of these seeds are left alone: the judge looks at it itself. So are gates,
  such as the share of runs that generalise: those that are not ok may well count as runs that do not.
- *Cells.* A mean over runs of several settings says of none of them how far it is from its bound. The judge is asked again on each
  cell of the grid: the worst one is named, and the field along which the value comes nearer to its bound. If there is none, more
  runs of the same grid only tell more exactly that the statement does not hold on it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import xarray as xr

from jaxdyn.engine.base.failure import let_through
from jaxdyn.engine.judging.check import VALUE_DIGITS, Check, Reading
from jaxdyn.engine.judging.estimate import excess, worst_entry
from jaxdyn.engine.judging.judged_runs import axes_of_settings, first_place, run_numbers, which_judged
from jaxdyn.errors import Inconclusive
from jaxdyn.status import FAILED, OK

__all__ = ["counting_unjudged", "located", "settled"]

Answer: TypeAlias = "Check | Reading"
One = TypeVar("One", bound="Check | Reading")
Ask: TypeAlias = "Callable[[xr.Dataset], Sequence[Answer]]"
CELLS = 64  # most cells that are asked one by one; of larger grids, the values of each field
NEARER = 0.8  # the share of its distance from the bound to which a value must come down along a field
CHANGE = 0.02  # relative change of a value by which it is said to count runs that are not judged; rounding changes it by less


def settled(answers: Sequence[One], ask: Ask, ds: xr.Dataset) -> list[One]:
    """A judge's answers, without a number where they rest on an undefined one.

    Args:
        answers: of the judge on ``ds``.
        ask: the judge's answers on other data.
        ds: the runs that are judged.

    Raises:
        Inconclusive: an answer counts runs that are not judged.
    """
    if counting := counting_unjudged(answers, ask, ds):
        more = f"{', '.join(map(repr, counting))}: the value changes with the number of runs that are not judged"
        raise Inconclusive(f"{more}; leave them out, as in flags.where(ds.x.notnull()), or count them by ds.status")
    return _defined(answers, ask, ds)


# undefined numbers


def _defined(answers: Sequence[One], ask: Ask, ds: xr.Dataset) -> list[One]:
    """The answers, without a number where they change if undefined numbers are infinite."""
    places = {name: at for name, at in _without_number(ds) if bool(at.any())}
    if not places:
        return list(answers)
    again = [_answers(ask, _filled(ds, places, numbers)) for numbers in _infinities(list(places))]
    place = first_place(functools.reduce(operator.or_, places.values())) or {}
    return [_undefined(one, place) if _unlike(one, again) else one for one in answers]


def _without_number(ds: xr.Dataset) -> Iterator[tuple[str, xr.DataArray]]:
    """For every observable, the judged runs in which it has no number."""
    judged = which_judged(ds)
    for name, values in run_numbers(ds):
        missing = values.isnull().all([dim for dim in values.dims if dim not in judged.dims])
        yield name, judged & missing.transpose(*judged.dims)


def _infinities(names: Sequence[str]) -> Iterator[dict[str, float]]:
    """Numbers for some observables: all infinite and, since a difference of infinite numbers is none, one at a time."""
    for sign in (math.inf, -math.inf):
        yield dict.fromkeys(names, sign)
        if len(names) > 1:
            yield from ({other: sign if other == name else 0.0 for other in names} for name in names)


def _filled(ds: xr.Dataset, places: Mapping[str, xr.DataArray], numbers: Mapping[str, float]) -> xr.Dataset:
    """The data with a number in the given places of each observable."""
    return ds.assign({name: ds[name].where(~places[name], number) for name, number in numbers.items()})


def _unlike(one: Answer, again: Sequence[Mapping[str, Answer] | None]) -> bool:
    """Whether an answer differs from the same one on other data; what is undecided stays so."""
    others = [None if answers is None else answers.get(one.name) for answers in again]
    if isinstance(one, Check):
        passed = [other.passed if isinstance(other, Check) else None for other in others]
        return (one.passed is True and not all(passed)) or (one.passed is False and any(passed))
    return not all(isinstance(other, Reading) and _close(one.value, other.value) for other in others)


def _close(one: float, other: float) -> bool:
    """Whether two numbers agree to rounding; NaN agrees with NaN."""
    return math.isclose(one, other, rel_tol=1e-9) or math.isnan(one) and math.isnan(other)


def _undefined(one: One, place: dict[str, Any]) -> One:
    """An answer without a number, and the place of the run that has none."""
    changes: dict[str, Any] = {"value": math.nan, "worst": place, "interval": None}
    if isinstance(one, Check):
        changes |= {"passed": None, "needed": None}
    return dataclasses.replace(one, **changes)


# runs that are not judged


def counting_unjudged(answers: Sequence[Answer], ask: Ask, ds: xr.Dataset) -> list[str]:
    """Names of the answers whose value depends on how many runs are not judged; arguments as for :func:`settled`."""
    part = _mixed(ds)
    if part is None:
        return []
    before = {one.name: one for one in answers} if part is ds else _answers(ask, part)
    failed, ok = (_answers(ask, _with_unjudged(part, status)) for status in (FAILED, OK))
    if before is None or failed is None or ok is None:
        return []
    known = [name for name, one in before.items() if name in failed and name in ok and not getattr(one, "gate", False)]
    return [name for name in known if _changes(before[name], failed[name]) and not _changes(failed[name], ok[name])]


def _mixed(ds: xr.Dataset) -> xr.Dataset | None:
    """The part of the data in which every cell has judged runs and others: all data, or one cell; None if there is none."""
    judged = which_judged(ds)
    if bool(judged.all()) or "seed" not in judged.dims:
        return None
    fewer: xr.DataArray = xr.where(judged.mean("seed") < 0.5, judged.sum("seed"), (~judged).sum("seed"))  # of either kind
    if bool((fewer > 0).all()):
        return ds
    if not bool((fewer > 0).any()):
        return None
    index = np.unravel_index(int(fewer.values.argmax()), fewer.shape)
    return ds.isel({axis: [i] for axis, i in zip(fewer.dims, index, strict=True)})


def _with_unjudged(ds: xr.Dataset, status: int) -> xr.Dataset:
    """The data with as many seeds again, in which no observable has a number."""
    first = int(ds.seed.max()) + 1
    none = {name: xr.full_like(values, np.nan) for name, values in run_numbers(ds)} | {"status": xr.full_like(ds.status, status)}
    more = ds.assign(none).assign_coords(seed=np.arange(first, first + ds.sizes["seed"]))
    return xr.concat([ds, more], "seed", data_vars="minimal", coords="minimal", compat="override")


def _changes(one: Answer, other: Answer) -> bool:
    """Whether a value changes by more than rounding; what is not finite does not tell."""
    values = one.value, other.value
    return all(map(math.isfinite, values)) and abs(values[0] - values[1]) > CHANGE * max(map(abs, values))


# cells


def located(checks: Sequence[Check], ask: Ask, ds: xr.Dataset) -> list[Check]:
    """The checks of a judge on ``ds``; those that do not pass name their worst cell, and the field that brings them nearer.

    Where the judge answers on no cell by itself, they stay as they are.
    """
    names = [check.name for check in checks if check.passed is not True and not math.isnan(check.value)]
    axes = [axis for axis in axes_of_settings(ds.status) if ds.sizes[axis] > 1]
    if not names or not axes:
        return list(checks)
    together = math.prod(ds.sizes[axis] for axis in axes) <= CELLS
    by_cell = [_on_cells(ask, ds, group) for group in ([axes] if together else [[axis] for axis in axes])]
    return [_located(check, [cells[check.name] for cells in by_cell if check.name in cells], ds) for check in checks]


def _on_cells(ask: Ask, ds: xr.Dataset, axes: Sequence[str]) -> dict[str, xr.DataArray]:
    """The values of a judge's answers by name, asked on each cell of some axes; NaN where it has no answer."""
    shape = [ds.sizes[axis] for axis in axes]
    coords = {axis: ds[axis].values for axis in axes if axis in ds.coords}
    values: dict[str, xr.DataArray] = {}
    for index in np.ndindex(*shape):
        cell = {axis: [i] for axis, i in zip(axes, index, strict=True)}
        for name, one in (_answers(ask, ds.isel(cell)) or {}).items():
            table = values.setdefault(name, xr.DataArray(np.full(shape, np.nan), coords, axes))
            table.values[index] = one.value
    return values


def _located(check: Check, tables: Sequence[xr.DataArray], ds: xr.Dataset) -> Check:
    """A check that does not pass, with its worst cell and the trend of its values along the grid."""
    if check.passed is True or not tables:
        return check
    place: dict[str, Any] = {}
    for values in tables:
        place |= worst_entry(values, excess(values.values, values.values, *check.bound))[1]
    beyond = check.passed is False or excess(check.value, check.value, *check.bound) > 0  # else more runs would decide
    return dataclasses.replace(check, worst=place | check.worst, trend=_trend(check, tables) if beyond else "")


def _trend(check: Check, tables: Sequence[xr.DataArray]) -> str:
    """Along which field of numbers the values come nearer to the bound, or lie farther inside, in words."""
    nearest: tuple[float, str] = NEARER, "along no field of the grid does it come nearer to its bound"
    for values in tables:
        for axis in values.dims:
            line = values.mean([dim for dim in values.dims if dim != axis], skipna=True)
            if axis not in values.coords or line[axis].dtype.kind not in "iuf" or bool(line.isnull().any()):
                continue
            line = line.sortby(axis)
            far = excess(line.values, line.values, *check.bound)
            steps = np.diff(far)
            if not ((steps < 0).all() or (steps > 0).all()) or max(far[0], far[-1]) <= 0:
                continue
            share = min(far[0], far[-1]) / max(far[0], far[-1])
            first, last = sorted((0, -1), key=lambda end: -far[end])
            ends = [f"{line.values[i]:.{VALUE_DIGITS}g} at {axis}={line[axis].values[i]:g}" for i in (first, last)]
            nearest = min(nearest, (share, f"it comes nearer to its bound along {axis}: {', '.join(ends)}"))
    return nearest[1]


def _answers(ask: Ask, ds: xr.Dataset) -> dict[str, Answer] | None:
    """The answers on changed data by name; None if the judge has none."""
    try:
        return {one.name: one for one in ask(ds)}
    except BaseException as error:
        let_through(error)
        return None
