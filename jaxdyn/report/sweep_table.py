"""The runs of a sweep as a table: its fields, seeds, how each run ended, and what was returned as a number or along an axis."""

from __future__ import annotations

import collections
import csv
import dataclasses
import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from jaxdyn import status
from jaxdyn.engine.base.jsonable import finite
from jaxdyn.engine.claims.description import field_texts
from jaxdyn.engine.claims.grid import POINT
from jaxdyn.plotting import helpers
from jaxdyn.report.columns import CsvText, observable_columns

__all__ = ["Curve", "Table", "quantiles", "table"]

Numbers: TypeAlias = "np.ndarray[Any, Any]"
LEVELS = 0.05, 0.5, 0.95  # median and central 90%


@dataclasses.dataclass(frozen=True)
class Curve:
    """A variable along one axis: [cell, seed, place on the axis]."""

    axis: str
    at: Numbers
    values: Numbers


@dataclasses.dataclass(frozen=True)
class Table:
    """A sweep's runs, cell by cell of its grid or point by point of its list.

    Args:
        fields: the values of each swept field, one per cell.
        seeds: of every cell.
        status: how each run ended, [cell, seed].
        scalars: variables with one number per run, [cell, seed], by name; of several forms ``predicted_w.printed``.
        curves: variables along one axis with numbers.
        others: all other variables with their axes, which no page draws.
        listed: whether the cells are a list of points, not a product.
    """

    fields: dict[str, list[Any]]
    seeds: list[int]
    status: Numbers
    scalars: dict[str, Numbers]
    curves: dict[str, Curve]
    others: dict[str, tuple[str, ...]]
    listed: bool

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.status)

    def ok(self, values: Numbers) -> Numbers:
        """Values of runs as floats, NaN where a run is not ok."""
        good = (self.status == status.OK).reshape(*self.status.shape, *[1] * (values.ndim - 2))
        numbers: Numbers = np.where(good, values.astype(float), np.nan)
        return numbers

    def without_number(self, values: Numbers) -> Numbers:
        """How many ok runs of each cell have NaN."""
        counts: Numbers = (np.isnan(values.astype(float)) & (self.status == status.OK)).sum(1)
        return counts

    @functools.cached_property
    def texts(self) -> dict[str, list[str]]:
        """The values of each field in words, one per cell; different ones look different."""
        return {name: field_texts(values) for name, values in self.fields.items()}

    def words(self, cell: int, names: Sequence[str] | None = None) -> str:
        """The fields of a cell in words, all or some: ``lr = 0.1, width = 8``."""
        return ", ".join(f"{name} = {self.texts[name][cell]}" for name in (self.fields if names is None else names))

    def at(self, cell: int) -> dict[str, Any]:
        """The swept fields of a cell."""
        return {name: values[cell] for name, values in self.fields.items()}

    def statuses(self) -> dict[str, int]:
        """How many runs ended in each way."""
        counts = np.bincount(self.status.ravel(), minlength=len(status.NAMES)).tolist()
        return {name: count for name, count in zip(status.NAMES, counts, strict=True) if count or name == "ok"}

    def failed(self) -> Iterator[tuple[int, str, list[int]]]:
        """Cells with runs that are not ok: the cell, how they ended, and their seeds."""
        for cell in np.flatnonzero((self.status != status.OK).any(1)).tolist():
            ends = collections.defaultdict(list)
            for seed, code in zip(self.seeds, self.status[cell].tolist(), strict=True):
                ends[code].append(seed)
            yield from ((cell, status.NAMES[code], seeds) for code, seeds in sorted(ends.items()) if code != status.OK)

    def to_json(self) -> dict[str, Any]:
        """Every cell with its numbers of runs, and median and central 90% over the ok seeds of each variable with one number.

        An infinite quantile is null; ``infinite`` says how many ok runs have an infinite number, ``no_number`` how many have none.
        """
        summaries = {name: self._summaries(values) for name, values in self.scalars.items()}
        good = (self.status == status.OK).sum(1).tolist()
        cells = [
            {
                "at": self.at(cell),
                "runs": len(self.seeds),
                "ok": good[cell],
                "values": {name: rows[cell] for name, rows in summaries.items()},
            }
            for cell in range(self.cells)
        ]
        failed = [{"at": self.at(cell), "status": word, "seeds": seeds} for cell, word, seeds in self.failed()]
        result: dict[str, Any] = finite({"runs": self.status.size, "statuses": self.statuses(), "failed": failed, "cells": cells})
        return result

    def _summaries(self, values: Numbers) -> list[dict[str, Any]]:
        """What ``to_json`` says of a variable, for each cell."""
        own = self.ok(values)
        rows = zip(quantiles(own).tolist(), np.isinf(own).sum(1).tolist(), self.without_number(values).tolist(), strict=True)
        names = "low", "median", "high", "infinite", "no_number"
        return [dict(zip(names, (*ends, infinite, none), strict=True)) for ends, infinite, none in rows]

    def to_csv(self, fixed: Mapping[str, Any]) -> str:
        """One row per run: fields (``fixed``: those with one value), seed, status, and all variables with one number per run.

        A variable with the name of a field is in the column ``recorded NAME``.
        """
        repeat = len(self.seeds)
        point = {POINT: range(self.cells)} if self.listed else {}
        columns = {name: [v for v in values for _ in range(repeat)] for name, values in (point | self.fields).items()}
        names = [status.NAMES[code] for code in self.status.ravel().tolist()]
        data = columns | {name: [value] * self.status.size for name, value in fixed.items()}
        data |= {"seed": self.seeds * self.cells, "status": names}
        names_of = observable_columns(self.scalars, list(data))
        data |= {names_of[name]: values.ravel().tolist() for name, values in self.scalars.items()}
        text = CsvText()
        writer = csv.writer(text, lineterminator=CsvText.ENDS)
        writer.writerow(data)
        writer.writerows(zip(*data.values(), strict=True))
        return text.getvalue()


def quantiles(values: Numbers, axis: int = 1) -> Numbers:
    """Low end, median and high end of the central 90% along seeds, as the last axis; NaN where no run is ok and has a number."""
    found: Numbers = np.moveaxis(helpers.quantiles(np.moveaxis(values, axis, 0), LEVELS), 0, -1)
    return found


def table(ds: xr.Dataset) -> Table:
    """The runs of a Dataset that :func:`jaxdyn.sweep` returned."""
    run_dims = [str(dim) for dim in ds.status.dims]
    axes, listed = run_dims[:-1], run_dims[:-1] == [POINT]
    if listed:
        fields = {str(name): c.values.tolist() for name, c in ds.coords.items() if c.dims == (POINT,) and name != POINT}
    else:
        rows = list(itertools.product(*(ds[axis].values.tolist() for axis in axes)))
        fields = {axis: [row[i] for row in rows] for i, axis in enumerate(axes)}
    shape = ds.status.values.reshape(-1, ds.sizes["seed"]).shape
    found = Table(fields, ds.seed.values.tolist(), ds.status.values.reshape(shape), {}, {}, {}, listed)
    for name, variable in _variables(ds, run_dims):
        own = [str(dim) for dim in variable.dims if dim not in run_dims]
        numeric = variable.dtype.kind in "biuf"
        if numeric and set(run_dims) <= set(variable.dims) and len(own) <= 1 and _is_rising(ds, own):
            values = variable.transpose(*run_dims, *own).values
            values = values.reshape(*shape, *values.shape[len(run_dims) :])
            if own:
                at = ds[own[0]].values if own[0] in ds.coords else np.arange(ds.sizes[own[0]])
                found.curves[name] = Curve(own[0], at, values)
            else:
                found.scalars[name] = values
        else:
            found.others[name] = tuple(own)
    return found


def _variables(ds: xr.Dataset, run_dims: Sequence[str]) -> Iterator[tuple[str, xr.DataArray]]:
    """All variables but the status; one of several forms is taken apart, and a complex one into its two parts.

    A part is called ``w.printed`` or ``z.real``; ``z[real]`` where a variable has that name itself.
    """

    def of(name: str, part: str) -> str:
        return f"{name}[{part}]" if f"{name}.{part}" in ds else f"{name}.{part}"

    for name, variable in ds.data_vars.items():
        forms = variable.form.values.tolist() if "form" in variable.dims else []
        for own, part in [(of(str(name), form), variable.sel(form=form)) for form in forms] or [(str(name), variable)]:
            if part.dtype.kind == "c":
                yield from ((of(own, "real"), part.real), (of(own, "imag"), part.imag))
            elif name != "status":
                yield own, part


def _is_rising(ds: xr.Dataset, own: Sequence[str]) -> bool:
    """Whether an axis, if there is one, has no coordinates or rising numbers, so that a line along it makes sense."""
    if not own or own[0] not in ds.coords:
        return True
    values = ds[own[0]].values
    return values.dtype.kind in "iuf" and bool((np.diff(values) > 0).all())
