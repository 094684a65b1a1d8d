"""Finished runs: looked up by program, cell and seed, and put together into labelled Datasets."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxdyn.engine.chunk import Chunk, Program, Result, versions
from jaxdyn.engine.reference import ref_to
from jaxdyn.engine.setting import Grid, field_table, split
from jaxdyn.errors import UsageError
from jaxdyn.version import installed_version

__all__ = ["Request", "Runs"]


@dataclasses.dataclass(frozen=True)
class Request:
    """Requested runs: a trial over a grid and seeds."""

    trial: Callable[..., Any]
    grid: Grid
    seeds: tuple[int, ...]

    @functools.cached_property
    def cells(self) -> list[tuple[Program, tuple[Any, ...]]]:
        """Program and swept values of each cell of the grid."""
        trial, setting = ref_to(self.trial), ref_to(self.grid.setting)
        programs: dict[Program, Program] = {}
        found = []
        for static, swept in map(split, self.grid.cells()):
            program = Program(trial, setting, static)
            found.append((programs.setdefault(program, program), swept))
        return found

    @functools.cached_property
    def programs(self) -> dict[tuple[Any, ...], Program]:
        """The programs of the cells, by what distinguishes their runs."""
        return {Runs.program_key(program): program for program, _ in self.cells}

    @property
    def seed_range(self) -> str:
        """``0:8`` for 0 to 7; seeds with gaps one by one."""
        if self.seeds == tuple(range(self.seeds[0], self.seeds[-1] + 1)):
            return f"{self.seeds[0]}:{self.seeds[-1] + 1}"
        return ", ".join(map(str, self.seeds))

    def attributes(self) -> dict[str, str]:
        """Provenance of a Dataset that leaves jaxdyn; strings only, so that every file format takes them."""
        settings = {row["name"]: row["value"] for row in field_table(self.grid)}
        return {
            "trial": ref_to(self.trial).title,
            "settings": json.dumps(settings, default=str),
            "seeds": self.seed_range,
            "versions": ", ".join(f"{name} {number}" for name, number in {"jaxdyn": installed_version(), **versions()}.items()),
        }


class Runs:
    """All finished runs of some jobs, looked up by program, cell and seed."""

    def __init__(self) -> None:
        self._places: dict[tuple[Any, ...], tuple[Result, int, int]] = {}

    @staticmethod
    def program_key(program: Program) -> tuple[Any, ...]:
        """What distinguishes the runs of different programs, however they are executed."""
        return program.trial, program.setting, program.label

    def add(self, program: Program, cells: Sequence[tuple[Any, ...]], seeds: Sequence[int], result: Result) -> None:
        """Add the runs of one chunk."""
        key = self.program_key(program)
        if result.zipped:
            for i, (cell, seed) in enumerate(zip(cells, seeds, strict=True)):
                self._places.setdefault((key, cell, seed), (result, i, 0))
            return
        for c, cell in enumerate(cells):
            for s, seed in enumerate(seeds):
                self._places.setdefault((key, cell, seed), (result, s, c))

    def has(self, chunk: Chunk) -> bool:
        """Whether every run of the chunk is here."""
        return not self.lacking(chunk)

    def lacking(self, chunk: Chunk) -> list[tuple[tuple[Any, ...], int]]:
        """The cells and seeds of those runs of a chunk that are not here."""
        key = self.program_key(chunk.program)
        return [(cell, seed) for cell, seed in chunk.pairs if (key, cell, seed) not in self._places]

    def dataset(self, request: Request) -> xr.Dataset:
        """One labelled Dataset: the grid's axes, ``seed``, then the observables' own axes (ragged ones padded with NaN).

        Its attributes are those of the request.
        """
        places = []
        for program, swept in request.cells:
            key = self.program_key(program)
            places += [self._places[key, swept, seed] for seed in request.seeds]
        shape = (*request.grid.shape, len(request.seeds))
        run_dims = (*request.grid.axes, "seed")
        first = places[0][0]
        for other in {id(place[0]): place[0] for place in places}.values():
            if other.dims != first.dims:
                odd = sorted(name for name in {*first.dims, *other.dims} if first.dims.get(name) != other.dims.get(name))
                raise UsageError(
                    f"{ref_to(request.trial).title} returns {', '.join(odd)} for some settings only, or with other axes: "
                    "all cells of a grid have the same observables"
                )
        variables: dict[str, tuple[tuple[str, ...], Any]] = {}
        for name, dims in first.dims.items():
            taken = [d for d in dims if d in run_dims]
            if taken or len(set(dims)) < len(dims) or name in run_dims:
                word = f"an axis called {taken[0]}" if taken else "its own name" if name in run_dims else "one axis twice"
                raise UsageError(f"{name}{dims}: {word} clashes with the axes of the runs ({', '.join(run_dims)}); rename it")
            parts = [result.arrays[name][s, c] for result, s, c in places]
            block = _stack(f"{ref_to(request.trial).title} returns {name}", parts)
            variables[name] = ((*run_dims, *dims), block.reshape(*shape, *block.shape[1:]))
        coords = _common_coords(ref_to(request.trial).title, [place[0] for place in places])
        coords |= {axis: list(values) for axis, values in request.grid.axes.items() if not isinstance(values[0], tuple)}
        ds = xr.Dataset(variables, {**coords, "seed": list(request.seeds)}, request.attributes())
        for axis, values in request.grid.axes.items():
            if isinstance(values[0], tuple):
                ds = ds.assign_coords({axis: [":".join(map(str, v)) for v in values]})
        return ds


def _common_coords(trial: str, results: list[Result]) -> dict[str, list[Any]]:
    """Coordinates of all programs: where an axis has several lengths, the longest, of which the others are beginnings."""
    distinct = list({id(r): r for r in results}.values())
    common: dict[str, list[Any]] = {}
    for axis in {axis: None for r in distinct for axis in r.coords}:
        given = [r.coords.get(axis) for r in distinct]
        longest = max((values for values in given if values is not None), key=len)
        common[axis] = list(longest)
        if astray := [values for values in given if values is None or values != longest[: len(values)]]:
            raise UsageError(
                f"{trial} returns the coords of {axis!r} as {_shown(longest)} and, for other settings, as {_shown(astray[0])}: all "
                "cells of a grid share an axis, shorter ones its beginning; record values that differ under another name"
            )
    return common


def _shown(values: Sequence[Any] | None) -> str:
    return "none" if values is None else f"({', '.join(map(str, values[:3]))}{', …' if len(values) > 3 else ''})"


def _stack(what: str, parts: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Stack arrays; ragged ones are padded with NaN to the largest shape.

    Raises:
        UsageError: whole numbers that this turns into floating-point numbers, and that these cannot hold.
    """
    ragged = len({p.shape for p in parts}) > 1
    dtype = np.result_type(*parts, *([np.float16] if ragged else []))
    for part in parts:
        if part.dtype.kind in "iu" and dtype.kind not in "iu" and (lost := _inexact(part)) is not None:
            why = "arrays of several lengths are padded with NaN" if ragged else "other settings return numbers of another kind"
            raise UsageError(f"{what}={lost}, which is not allowed: {why}, and float64 does not hold this whole number")
    if not ragged:
        return np.stack(parts)
    full = np.max([p.shape for p in parts], axis=0)
    block = np.full((len(parts), *full), np.nan, dtype)
    for i, part in enumerate(parts):
        block[i][tuple(slice(n) for n in part.shape)] = part
    return block


def _inexact(part: np.ndarray[Any, Any]) -> int | None:
    """A whole number of an array that float64 does not hold: without its factors of two it has more than 53 bits."""
    flat = np.ravel(part)
    size = np.abs(flat.astype(np.int64) if part.dtype.kind == "i" else flat).astype(np.uint64)
    odd = size // np.maximum(size & -size, 1)
    lost = flat[odd >= 2**53]
    return int(lost[0]) if lost.size else None
