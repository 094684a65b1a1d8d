"""Which runs the points of a figure belong to, where only their values tell.

A value of many digits that one run alone has is of that run. A single one proves little: the median of an odd number of runs is
one of their values, and a fraction may be a theory's, too. So a series is given to runs only as a whole, if every point of it is
found, and if it is one of two things:

- *a scatter of all runs*: of each cell that it touches, two or more, and all that are judged; a summary has fewer points.
- *a curve of one run* along an axis of its variable. A curve that has the same rank among its fellows all along may be a quantile
  of them that happens to be one run: it is given to its run only where the curves of all of them are drawn.

The other coordinate of a point is in the same run, or it says a place: a field's value or a seed, which have to be the run's own, a
number for each cell, or a position along the series.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from jaxdyn import status

__all__ = ["search"]

Array: TypeAlias = "np.ndarray[Any, Any]"
LARGEST = 4_000_000  # values of a variable in which points are searched for
PLAIN = 1e-6  # relative distance from a number of four digits, below which a value may be in several places by chance
LEAST = 3  # points of a curve
SUBSETS = 4  # axes of the runs, up to which every choice of them is a group of fellows


@dataclasses.dataclass(frozen=True)
class _Variable:
    """A variable as [run, entry], and its own axes."""

    values: Array
    first: int  # number of its first entry, of all variables' entries
    sizes: tuple[int, ...]
    at: tuple[Array, ...]  # along each of its own axes


@dataclasses.dataclass(frozen=True)
class _Curve:
    """A curve of one run: what it is of, and the groups of fellows in which it may be a quantile."""

    run: int
    of: tuple[Any, ...]
    groups: list[Array]


def search(points: Sequence[tuple[int, Array]], ds: xr.Dataset) -> list[Array | None]:
    """The runs of series: one where all points are of one run, else one for each point (-1: not drawn); None: of no known run.

    Args:
        points: of each series its panel and its points (n, 2), NaN where nothing is drawn.
        ds: with ``status``, whose axes are those of the runs.
    """
    values = _Values(ds, np.unique(np.concatenate([np.empty(0), *(xy[np.isfinite(xy)] for _, xy in points)])))
    found = [values.runs_of(panel, xy) for panel, xy in points]
    drawn = collections.Counter((one.of, one.run) for one in found if isinstance(one, _Curve))
    return [_accepted(one, drawn) if isinstance(one, _Curve) else one for one in found]


def _accepted(curve: _Curve, drawn: collections.Counter[tuple[Any, int]]) -> Array | None:
    """The run of a curve, unless it may be a quantile: fellows are missing, or it is drawn again."""
    sole = drawn[curve.of, curve.run] == 1
    known = all(sole and all(drawn[curve.of, run] for run in group.tolist()) for group in curve.groups)
    return np.array([curve.run]) if known else None


class _Values:
    """The wanted values, and in which runs and entries of a Dataset they are."""

    def __init__(self, ds: xr.Dataset, wanted: Array) -> None:
        self.ds, self.wanted = ds, wanted
        self.dims, self.shape = tuple(map(str, ds.status.dims)), ds.status.shape
        self.ok = (ds.status.values == status.OK).ravel()
        self.variables: list[_Variable] = []
        self.telling = _is_telling(wanted)
        pairs, triples = [np.empty(0, int)], [np.empty((3, 0), int)]
        first = 0
        for variable in ds.data_vars.values():
            if variable.dtype.kind not in "iuf" or not set(self.dims) <= set(variable.dims) or variable.size > LARGEST:
                continue
            moved = variable.transpose(*self.dims, ...)
            values = moved.values.astype(float).reshape(self.ok.size, -1)
            place = _places(wanted, values)
            run, entry = hit = np.nonzero(place >= 0)
            pairs.append(np.unique(place[hit] * self.ok.size + run))
            if variable.dtype.kind == "f":
                alone = np.bincount(pairs[-1] // self.ok.size, minlength=wanted.size)[place[hit]] == 1
                triples.append(np.stack([place[hit], run, first + entry])[:, alone])
                self.variables.append(_Variable(values, first, moved.shape[len(self.dims) :], self._along(moved)))
            first += values.shape[1]
        self.pairs = np.unique(np.concatenate(pairs))
        self.triples = (joined := np.concatenate(triples, 1))[:, np.argsort(joined[0], kind="stable")]
        owner, runs = np.divmod(self.pairs, max(self.ok.size, 1))
        self.sole = np.full(wanted.size, -1)  # the run that alone has a value
        self.sole[owner] = runs
        self.sole[(np.bincount(owner, minlength=wanted.size) != 1) | ~np.isin(np.arange(wanted.size), self.triples[0])] = -1

    def _along(self, variable: xr.DataArray) -> tuple[Array, ...]:
        """What stands along each axis of a variable that is none of the runs': numbers, or places from 0."""
        own = [dim for dim in variable.dims if dim not in self.dims]
        numeric = [dim in variable.coords and variable[dim].dtype.kind in "iuf" for dim in own]
        return tuple(
            variable[dim].values.astype(float) if known else np.arange(float(variable.sizes[dim]))
            for dim, known in zip(own, numeric, strict=True)
        )

    def runs_of(self, panel: int, xy: Array) -> Array | _Curve | None:
        """The runs of a series, told by its heights or else by its other coordinate."""
        shown = np.isfinite(xy).all(1)
        if not shown.any():
            return None
        places = _places(self.wanted, xy[shown])
        for leading in (1, 0):
            runs = self.sole[places[:, leading]]
            if (runs >= 0).all() and 2 * self.telling[places[:, leading]].sum() >= len(runs):
                entries, other = self._entries(places[:, leading]), xy[shown, 1 - leading]
                inside = bool(np.isin(places[:, 1 - leading] * self.ok.size + runs, self.pairs).all())
                if (runs == runs[0]).all():
                    return self._curve((panel, leading), int(runs[0]), entries, other, inside)
                if self._is_whole(runs, entries) and (inside or self._says_place(runs, entries, other)):
                    index = np.full(len(xy), -1)
                    index[shown] = runs
                    return index
        return None

    def _entries(self, places: Array) -> Array:
        """The entry of each value; of several, the one that most of the points have, in the variable that most of them have."""
        value, _, entry = self.triples[:, np.isin(self.triples[0], places)]
        weight = np.bincount(places, minlength=self.wanted.size)[value]
        starts = np.array([variable.first for variable in self.variables])
        owner = np.searchsorted(starts, entry, "right")
        often, more = np.bincount(entry, weight)[entry], np.bincount(owner, weight)[owner]
        order = np.lexsort([entry, -more, -often, value])
        known, first = np.unique(value[order], return_index=True)
        chosen: Array = entry[order][first][np.searchsorted(known, places)]
        return chosen

    def _columns(self, entries: Array) -> Array:
        """The values of all runs in some entries; NaN where a run is not ok."""
        columns = np.full((self.ok.size, entries.size), np.nan)
        for variable in self.variables:
            own = (entries >= variable.first) & (entries < variable.first + variable.values.shape[1])
            columns[:, own] = variable.values[:, entries[own] - variable.first]
        columns[~self.ok] = np.nan
        return columns

    def _cells(self, runs: Array) -> Array:
        """The number of the cell of each run."""
        places = list(np.unravel_index(runs, self.shape))
        places[self.dims.index("seed")] = np.zeros_like(runs)
        cells: Array = np.ravel_multi_index(places, self.shape)
        return cells

    # a scatter of all runs

    def _is_whole(self, runs: Array, entries: Array) -> bool:
        """Whether points are, entry by entry, all judged runs of the cells that they touch, and at least two of each."""
        if "seed" not in self.dims:
            return False
        kinds, kind = np.unique(entries, return_inverse=True)
        drawn = np.zeros((self.ok.size, kinds.size), bool)
        drawn[runs, kind] = True
        shape, axis = (*self.shape, kinds.size), self.dims.index("seed")
        judged = np.isfinite(self._columns(kinds))
        count = drawn.reshape(shape).sum(axis)
        missing = (judged & ~drawn).reshape(shape).any(axis)
        return not ((count > 0) & (missing | (count < 2))).any()

    def _says_place(self, runs: Array, entries: Array, other: Array) -> bool:
        """Whether a coordinate that is no value of the runs is a place for them, and the right one."""
        at = dict(zip(self.dims, np.unravel_index(runs, self.shape), strict=True))
        if (other == at["seed"]).all():
            return True
        right, held = False, False
        for coord in self.ds.coords.values():
            if coord.dtype.kind in "iuf" and len(coord.dims) == 1 and coord.dims[0] in at:
                held |= coord.dims[0] != "seed" and bool(np.isin(other, coord.values.astype(float)).all())
                right |= bool((coord.values.astype(float)[at[str(coord.dims[0])]] == other).all())
        if right or held:
            return right
        steps = np.diff(other)
        if other.size >= LEAST and steps[0] != 0 and np.allclose(steps, steps[0], rtol=1e-9, atol=0):
            return True
        _, group = np.unique(np.stack([self._cells(runs), entries]), axis=1, return_inverse=True)
        low, high = np.full(group.max() + 1, np.inf), np.full(group.max() + 1, -np.inf)
        np.minimum.at(low, group.ravel(), other)
        np.maximum.at(high, group.ravel(), other)
        return bool((low == high).all())

    # a curve of one run

    def _curve(self, where: tuple[int, int], run: int, entries: Array, other: Array, inside: bool) -> _Curve | None:
        """A curve along one axis of a variable; None if points of one run are none."""
        starts = [variable.first for variable in self.variables]
        number = int(np.searchsorted(starts, entries[0], "right")) - 1
        variable = self.variables[number]
        last = variable.first + variable.values.shape[1]
        if entries.size < LEAST or not variable.sizes or not ((entries >= variable.first) & (entries < last)).all():
            return None
        places = np.unravel_index(entries - variable.first, variable.sizes)
        moving = [axis for axis, place in enumerate(places) if np.ptp(place)]
        if len(moving) != 1 or abs(np.sign(np.diff(places[moving[0]])).sum()) != entries.size - 1:
            return None
        along = places[moving[0]]
        if not inside and not any(_is_affine(other, scale) for scale in (variable.at[moving[0]][along], along.astype(float))):
            return None
        fixed = tuple(int(place[0]) for axis, place in enumerate(places) if axis != moving[0])
        return _Curve(run, (*where, number, moving[0], fixed), self._fellows(run, entries))

    def _fellows(self, run: int, entries: Array) -> list[Array]:
        """The groups of runs, this one among them, in which it has the same rank at all entries."""
        values = self._columns(entries)
        at = np.unravel_index(run, self.shape)
        numbers = np.arange(self.ok.size).reshape(self.shape)
        wide = [axis for axis, size in enumerate(self.shape) if size > 1]
        sizes = range(1, len(wide) + 1) if len(wide) <= SUBSETS else {1, len(wide)}
        groups = []
        for free in itertools.chain.from_iterable(itertools.combinations(wide, size) for size in sizes):
            group = numbers[tuple(slice(None) if axis in free else at[axis] for axis in range(len(at)))].ravel()
            group = group[np.isfinite(values[group]).any(1)]
            known = np.isfinite(values[group]).sum(0)
            rank = (values[group] < values[run]).sum(0)
            if group.size > 1 and (np.ptp(rank) == 0 or np.ptp(rank / np.maximum(known - 1, 1)) == 0):
                groups.append(group)
        return groups


def _places(wanted: Array, values: Array) -> Array:
    """Where among rising values each one is; -1 if it is not there."""
    if not wanted.size:
        return np.full(values.shape, -1)
    place = np.minimum(np.searchsorted(wanted, values), wanted.size - 1)
    return np.where(wanted[place] == values, place, -1)


def _is_affine(values: Array, scale: Array) -> bool:
    """Whether values rise or fall in step with a scale."""
    if values[0] == values[-1] or scale[0] == scale[-1]:
        return False
    return np.allclose((values - values[0]) / (values[-1] - values[0]), (scale - scale[0]) / (scale[-1] - scale[0]), atol=1e-9)


def _is_telling(values: Array) -> Array:
    """Whether a value is of so many digits that no other quantity has it by chance."""
    with np.errstate(all="ignore"):
        unit = 10.0 ** (np.floor(np.log10(np.abs(values))) - 3)
        found: Array = np.isfinite(values) & (np.abs(values - np.round(values / unit) * unit) > PLAIN * np.abs(values))
    return found
