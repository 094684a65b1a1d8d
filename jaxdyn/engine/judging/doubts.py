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

from jaxdyn.engine.base.failure import let_mistakes_through
from jaxdyn.engine.judging.check import VALUE_DIGITS, Check, Reading
from jaxdyn.engine.judging.estimate import excess, python_value, worst_entry
from jaxdyn.engine.judging.judged_runs import axes_of_settings, first_place, run_numbers, which_judged
from jaxdyn.errors import Inconclusive
from jaxdyn.status import FAILED, OK
from jaxdyn.wording import place

__all__ = ["counting_unjudged", "located", "settled"]

Answer: TypeAlias = "Check | Reading"
One = TypeVar("One", bound="Check | Reading")
Ask: TypeAlias = "Callable[[xr.Dataset], Sequence[Answer]]"
CELLS = 64  # most cells that are asked one by one
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
    where = first_place(functools.reduce(operator.or_, places.values())) or {}
    return [_undefined(one, where) if _unlike(one, again) else one for one in answers]


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

    Only where the judge answers on every cell by itself, and its value is the mean, the root mean square, or an extreme of these
    answers: a slope or a difference across the grid says nothing of a cell. Other checks stay as they are.
    """
    names = [check.name for check in checks if check.passed is not True and not math.isnan(check.value)]
    axes = [axis for axis in axes_of_settings(ds.status) if ds.sizes[axis] > 1]
    if not names or not axes or math.prod(ds.sizes[axis] for axis in axes) > CELLS:
        return list(checks)
    cells = _on_cells(ask, ds, axes)
    return [_located(check, cells[check.name]) if check.name in cells else check for check in checks]


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


def _located(check: Check, values: xr.DataArray) -> Check:
    """A check that does not pass, with its worst cell and the trend of its values along the grid."""
    if check.passed is True or bool(values.isnull().any()):
        return check
    part = values.sel({axis: [place] for axis, place in check.worst.items() if axis in values.coords})
    if not _rests_on(check.value, part.values):
        return check
    far = excess(part.values, part.values, *check.bound)
    _, cell = worst_entry(part, far)
    worst = cell if float(np.max(far)) > 0 else {}  # a cell that meets the bound by itself is not to blame
    beyond = check.passed is False or excess(check.value, check.value, *check.bound) > 0  # else more runs would decide
    return dataclasses.replace(check, worst=check.worst | worst, trend=_trend(check, values) if beyond else "")


def _rests_on(value: float, cells: np.ndarray) -> bool:
    """Whether a value is the mean, the root mean square, or an extreme of those of the cells, to rounding."""
    squares = np.mean(np.sign(cells) * cells**2)
    made = (np.mean(cells), math.copysign(math.sqrt(abs(squares)), squares), np.min(cells), np.max(cells))
    return any(math.isclose(value, one, rel_tol=1e-6, abs_tol=1e-12) for one in made)


def _trend(check: Check, values: xr.DataArray) -> str:
    """Along which field the cells come nearer to the bound, or at which of its values they are nearest, in words.

    How far cells are from the bound is averaged, not their values: on both sides of a bound these may cancel.
    """
    far = values.copy(data=excess(values.values, values.values, *check.bound))
    if not np.isfinite(far).all():  # an infinite cell is infinitely far, whatever the others are
        return ""
    shares: dict[str, tuple[float, xr.DataArray]] = {}
    for axis in (str(dim) for dim in values.dims if dim in values.coords):
        line = far.mean([dim for dim in values.dims if dim != axis])
        if float(line.max()) > 0:
            shares[axis] = float(line.min() / line.max()), line
    if not shares:
        return ""
    axis, (share, line) = min(shares.items(), key=lambda item: item[1][0])
    if share > NEARER:
        return "no field of the grid brings it nearer to its bound"

    def at(i: int) -> str:
        cell = place({axis: python_value(line[axis].values[i])}, lambda x: f"{x:g}")
        one_sided = not all(map(math.isfinite, check.bound))
        return f"{float(values.isel({axis: i}).mean()):.{VALUE_DIGITS}g} at {cell}" if one_sided else cell

    order = np.argsort(line[axis].values, kind="stable") if line[axis].dtype.kind in "iuf" else np.array([], int)
    steps = np.diff(line.values[order])
    if len(order) and ((steps < 0).all() or (steps > 0).all()):
        first, last = (order[0], order[-1]) if steps[0] < 0 else (order[-1], order[0])
        return f"it comes nearer to its bound along {axis}: {at(int(first))}, {at(int(last))}"
    return f"it is nearest to its bound with {at(int(line.values.argmin()))}"


def _answers(ask: Ask, ds: xr.Dataset) -> dict[str, Answer] | None:
    """The answers on changed data by name; None if the judge has none."""
    try:
        return {one.name: one for one in ask(ds)}
    except BaseException as error:
        let_mistakes_through(error)
        return None
