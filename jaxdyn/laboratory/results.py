"""What the laboratory has found: for each law and variant its error along training, until when it holds, and a verdict.

A law's verdict on a variant is *upheld* where the interval of its mean error over seeds lies within the law's bound, *refuted*
where it lies outside, *inconclusive* in between, with fewer than two runs of which the law says anything, or with a measurement
that is no finite number; *toothless* where the mechanism switched off passes, too, or the prediction at shuffled times, as far as
it has a course. What an instrument reads is *measured*: its mean over layers, at the end. Intervals are Student's, 95%.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxdyn import stats
from jaxdyn.instruments.instrument import Instrument
from jaxdyn.instruments.law import Law, errors, holds_until, shuffled
from jaxdyn.laboratory.setting import reading_name
from jaxdyn.status import OK
from jaxdyn.wording import plural

__all__ = [
    "Cell",
    "Laboratory",
    "alike",
    "cells_of",
    "error_along",
    "errors_of",
    "own_dims",
    "reading_along",
    "readings_of",
    "shown_readings",
    "sides_of",
    "until",
]

VERDICTS = ("upheld", "refuted", "inconclusive", "toothless", "measured", "not asked")


@dataclasses.dataclass(frozen=True)
class Cell:
    """A law, asked of a variant at some numbers, or one reading of an instrument there.

    Args:
        law: the name of the law, or of the instrument.
        variant: the variant's name.
        numbers: swept fields, such as the rate.
        error: the law's mean error over seeds at the end; ``low, high`` are its interval.
        until: the last step until which the mean error is within the bound; None: it never is.
        off, shuffled: the mean error of the mechanism switched off, and of the prediction at shuffled times; NaN: it has no course.
        runs: of which the law says something; ``lost`` have diverged, ``unknown`` have a measurement that is no finite number.
        verdict: see above; for "not asked" ``reason`` says why.
        reading: what an instrument reads; empty for a law.
        value: its mean over layers and seeds at the end; ``low, high`` are its interval.
    """

    law: str
    variant: str
    numbers: Mapping[str, float]
    error: float = math.nan
    low: float = math.nan
    high: float = math.nan
    until: int | None = None
    off: float = math.nan
    shuffled: float = math.nan
    runs: int = 0
    lost: int = 0
    unknown: int = 0
    verdict: str = "not asked"
    reason: str = ""
    reading: str = ""
    value: float = math.nan


@dataclasses.dataclass(frozen=True)
class Laboratory:
    """A finished study.

    Args:
        laws: that were watched.
        variants: fields by which each variant differs, by its name.
        cells: one for each law, or reading of an instrument, each variant, and combination of swept numbers.
        data: the runs of every variant; without those of which nothing was asked.
        fields: what all variants share.
        instruments: that were watched.
    """

    laws: tuple[Law, ...]
    variants: Mapping[str, Mapping[str, Any]]
    cells: tuple[Cell, ...]
    data: Mapping[str, xr.Dataset]
    fields: Mapping[str, Any]
    instruments: tuple[Instrument, ...] = ()

    @property
    def alike(self) -> tuple[tuple[str, ...], ...]:
        """Variants whose runs gave the same numbers, in groups: nothing has read what differs between them, or nothing moves."""
        groups = list[list[str]]()
        for name, ds in self.data.items():
            same = next((group for group in groups if _same(ds, self.data[group[0]])), None)
            groups.append([name]) if same is None else same.append(name)
        return tuple(tuple(group) for group in groups if len(group) > 1)

    def to_frame(self) -> Any:
        """A DataFrame with a row for each cell."""
        rows = [{k: v for k, v in dataclasses.asdict(cell).items() if k != "numbers"} | dict(cell.numbers) for cell in self.cells]
        columns = {name: ("cell", [row.get(name) for row in rows]) for name in dict.fromkeys(itertools.chain(*rows))}
        return xr.Dataset(columns).to_dataframe()

    def cell(self, law: str, variant: str) -> tuple[Cell, ...]:
        """The cells of a law or an instrument and a variant, for each combination of swept numbers, and each reading."""
        return tuple(cell for cell in self.cells if cell.law == law and cell.variant == variant)

    def __str__(self) -> str:
        return table(self)


def own_dims(law: Law, ds: xr.Dataset) -> list[str]:
    """The law's own dimensions."""
    dims = map(str, ds[f"measured_{law.name}"].dims)  # a swept field of such a name has values
    return [dim for dim in dims if dim.startswith(f"{law.name}_") and dim not in ds.coords]


def sides_of(law: Law, ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Predicted, measured, and where the law speaks; nothing of runs that are not ok, and NaN where a side was not finite."""
    fine = ds.status == OK
    return (
        *(ds[f"{side}_{law.name}"].where(fine & ds[f"known_{side}_{law.name}"].astype(bool)) for side in ("predicted", "measured")),
        ds[f"speaks_{law.name}"].astype(bool) & fine,
    )


def errors_of(law: Law, ds: xr.Dataset, predicted: xr.DataArray | None = None) -> xr.DataArray:
    """The error until every time, of the law or of another prediction."""
    own, measured, speaks = sides_of(law, ds)
    return errors(own if predicted is None else predicted, measured, speaks, own_dims(law, ds), law.absolute)


def error_along(law: Law, ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Mean error over seeds until every time, and its interval."""
    return stats.mean_interval(errors_of(law, ds), "seed")


def cells_of(law: Law, variant: str, ds: xr.Dataset) -> list[Cell]:
    """The law's cells of one variant."""
    predicted, measured, speaks = sides_of(law, ds)
    error = errors_of(law, ds)
    mean, low, high = (x.isel(time=-1) for x in stats.mean_interval(error, "seed"))
    held = holds_until(error.mean("seed"), law.bound)
    others = {"off": xr.DataArray(law.off(*_in_time(predicted, measured)), dims=_time_first(measured))}
    said = predicted.where(speaks)
    moves = (said.max("time") > said.min("time")).any(["seed", *own_dims(law, ds)])
    mixed = shuffled(predicted)
    others["shuffled"] = mixed.where(mixed.notnull(), predicted)  # a time at which nothing was said
    rejected = {name: errors_of(law, ds, other).isel(time=-1).mean("seed") for name, other in others.items()}
    rejected["shuffled"] = rejected["shuffled"].where(moves)
    axes = [str(dim) for dim in mean.dims]
    runs, lost = error.isel(time=-1).count("seed"), (ds.status != OK).sum("seed")
    dims = ["time", *own_dims(law, ds)]
    unknown = (measured.isnull() & speaks).any(dims).sum("seed")
    found = []
    for place in np.ndindex(*(mean.sizes[dim] for dim in axes)):
        at = dict(zip(axes, place, strict=True))
        steps = int(held.isel(at))
        values: dict[str, Any] = {"error": mean, "low": low, "high": high, **rejected}
        values = {name: float(x.isel(at)) for name, x in values.items()}
        there = {dim: i for dim, i in at.items() if dim in lost.dims}
        number, hidden = int(runs.isel(at)), int(unknown.isel({dim: i for dim, i in at.items() if dim in unknown.dims}))
        word, reason = verdict(law, values, number, hidden)
        cell = Cell(law.name, variant, {dim: float(ds[dim].isel({dim: i})) for dim, i in at.items() if dim in ds.coords})
        last = int(ds.time[steps]) if steps >= 0 else None
        cell = dataclasses.replace(cell, **values, until=last, runs=number, lost=int(lost.isel(there)), unknown=hidden)
        found.append(dataclasses.replace(cell, verdict=word, reason=reason))
    return found


def shown_readings(one: Instrument, ds: xr.Dataset) -> list[str]:
    """What an instrument has read in these runs."""
    return [label for label in one.dims if reading_name(one, label) in ds]


def reading_along(one: Instrument, label: str, ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """What an instrument reads along training, mean over layers: its mean over seeds and its interval, without diverged runs."""
    return stats.mean_interval(_over_layers(one, label, ds), "seed")


def _over_layers(one: Instrument, label: str, ds: xr.Dataset) -> xr.DataArray:
    values = ds[reading_name(one, label)].astype(float)
    own = [dim for dim in map(str, values.dims) if dim.startswith(f"{one.name}_") and dim not in ds.coords]
    values = values.mean(own, skipna=False)
    return values.where(np.isfinite(values) & (ds.status == OK))


def readings_of(one: Instrument, variant: str, ds: xr.Dataset) -> list[Cell]:
    """The instrument's cells of one variant."""
    lost, found = (ds.status != OK).sum("seed"), []
    for label in shown_readings(one, ds):
        last = _over_layers(one, label, ds).isel(time=-1)
        count = last.count("seed")
        mean, low, high = stats.mean_interval(last, "seed")
        for place in np.ndindex(*mean.shape):
            at = dict(zip(map(str, mean.dims), place, strict=True))
            numbers = {dim: float(ds[dim].isel({dim: i})) for dim, i in at.items() if dim in ds.coords}
            value, *bounds = (float(x.isel(at)) for x in (mean, low, high))
            runs = int(count.isel(at))
            reason = "" if runs else "It is a finite number in no run."
            cell = Cell(one.name, variant, numbers, low=bounds[0], high=bounds[1], runs=runs, lost=int(lost.isel(at)))
            found.append(dataclasses.replace(cell, verdict="measured", reason=reason, reading=label, value=value))
    return found


def _same(one: xr.Dataset, other: xr.Dataset) -> bool:
    """Whether all that was recorded in both is the same, bit for bit."""
    both = [name for name in one.data_vars if name in other]
    return all(np.array_equal(one[n].values, other[n].values, equal_nan=one[n].dtype.kind == "f") for n in both)


def _time_first(x: xr.DataArray) -> list[str]:
    return ["time", *(str(dim) for dim in x.dims if dim != "time")]


def _in_time(*sides: xr.DataArray) -> tuple[np.ndarray, ...]:
    """Arrays whose first axis is time."""
    return tuple(np.asarray(x.transpose(*_time_first(sides[-1])).values) for x in sides)


def verdict(law: Law, values: Mapping[str, float], runs: int, unknown: int = 0) -> tuple[str, str]:
    """The verdict on a law's error, and the reason where there is none."""
    if unknown:
        missed = f"In {plural(unknown, 'run')} what was measured is no finite number, as where a solver has failed."
        return "inconclusive", missed
    if runs < 2:
        return "inconclusive", f"The law says something of {plural(runs, 'run')}; an interval needs two."
    if values["low"] <= law.bound < values["high"]:
        return "inconclusive", "The bound lies within the interval of the error."
    if math.isinf(values["error"]):
        return "refuted", "In a run its prediction is no finite number, or nothing moves where it has movement."
    if values["high"] > law.bound:
        return "refuted", ""
    words = {"off": "the mechanism switched off", "shuffled": "the prediction at shuffled times"}
    passes = [text for name, text in words.items() if values.get(name, math.inf) <= law.bound]
    return ("toothless", f"It does not reject {passes[0]}.") if passes else ("upheld", "")


def until(cell: Cell) -> str:
    """Until when a law holds, in words; empty where there is no error."""
    if math.isnan(cell.error):
        return ""
    return "at no time" if cell.until is None else f"step {cell.until}"


def table(found: Laboratory) -> str:
    """All cells as text: laws and variants, error with interval, until when the law holds, verdict; then what instruments read."""
    laws = [("law", "variant", "error", "95%", "bound", "holds until", "runs", "diverged", "verdict")]
    read = [("instrument", "variant", "reading", "at the end", "95%", "runs", "diverged", "verdict")]
    bounds = {law.name: law.bound for law in found.laws}
    reasons = dict[str, None]()
    for cell in found.cells:
        variant = cell.variant + "".join(f", {name}={value:g}" for name, value in cell.numbers.items())
        ends = (str(cell.runs), str(cell.lost), cell.verdict) if cell.verdict != "not asked" else ("", "", cell.verdict)
        interval = f"{cell.low:.3g} to {cell.high:.3g}" if math.isfinite(cell.low) else ""
        if cell.law in bounds:
            laws.append((cell.law, variant, _digits(cell.error), interval, f"{bounds[cell.law]:g}", until(cell), *ends))
        else:
            read.append((cell.law, variant, _without_mathematics(cell.reading), _digits(cell.value), interval, *ends))
        if cell.reason:
            reasons[f"{cell.law}, {variant}: {cell.reason}"] = None
    lines = [line for rows in (laws, read) if len(rows) > 1 for line in _aligned(rows)]
    return "\n".join([*lines, *reasons, *map(alike, found.alike)])


def alike(names: Sequence[str]) -> str:
    """A sentence on variants that gave the same numbers."""
    return (
        f"{', '.join(names[:-1])} and {names[-1]} gave the same numbers: nothing reads what differs between them, or nothing moves."
    )


def _digits(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"


def _without_mathematics(label: str) -> str:
    r"""A label for a terminal: ``mean |cos|`` for ``mean $|\cos|$``."""
    return label.replace("$", "").replace("\\", "")


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, their columns aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
