"""Finished runs as blocks, put together into labelled Datasets by index arithmetic rather than run by run."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import xarray as xr

from jaxdyn.engine.base.reference import ref_to
from jaxdyn.engine.claims.grid import DICTIONARY, TAKEN_FOR, Grid, field_table
from jaxdyn.engine.claims.setting import split
from jaxdyn.engine.programs.chunk import Chunk, Program, versions
from jaxdyn.engine.storage.arrays import Arrays
from jaxdyn.engine.storage.seeds import Places, Seeds, places, seed_array, seeds_of
from jaxdyn.errors import UsageError
from jaxdyn.version import installed_version

__all__ = ["Request", "Runs", "distinct_runs"]

Cell: TypeAlias = "tuple[Any, ...]"  # values of the swept fields
Key: TypeAlias = "tuple[Any, ...]"  # of a program
Numbers: TypeAlias = "np.ndarray[Any, Any]"
PART = 2**27  # most bytes of an observable in one part of a lazy Dataset


@dataclasses.dataclass(frozen=True)
class Request:
    """Requested runs: a trial over a grid and seeds."""

    trial: Callable[..., Any]
    grid: Grid
    seeds: Seeds

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", seeds_of(self.seeds))

    @functools.cached_property
    def cells(self) -> list[tuple[Program, Cell]]:
        """The program and the swept values of each cell of the grid."""
        trial, setting = ref_to(self.trial), ref_to(self.grid.setting)
        programs: dict[Program, Program] = {}
        found = []
        for static, swept in map(split, self.grid.cells()):
            program = Program(trial, setting, static)
            found.append((programs.setdefault(program, program), swept))
        return found

    @functools.cached_property
    def programs(self) -> dict[Key, Program]:
        """The programs of the cells, by :meth:`Runs.program_key`."""
        return {Runs.program_key(program): program for program, _ in self.cells}

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.cells) * len(self.seeds)

    @property
    def seed_range(self) -> str:
        """The seeds as text: ``0:8`` for 0 to 7; those with gaps one by one."""
        if isinstance(self.seeds, range):
            return f"{self.seeds[0]}:{self.seeds[-1] + 1}"
        return ", ".join(map(str, self.seeds))

    def attributes(self) -> dict[str, str]:
        """Attributes of its Dataset: where the data come from; strings only, so that every file format takes them."""
        settings = {row["name"]: row["value"] for row in field_table(self.grid)}
        return {
            "trial": ref_to(self.trial).title,
            "settings": json.dumps(settings, default=str),
            "seeds": self.seed_range,
            "versions": ", ".join(f"{name} {number}" for name, number in {"jaxdyn": installed_version(), **versions()}.items()),
        }


class Block(NamedTuple):
    """The runs of one chunk: all cells with all seeds or, if its result is zipped, the i-th cell with the i-th seed."""

    cells: Mapping[Cell, int] | Sequence[Cell]  # distinct cells and their places; of a list, the cell of each run
    seeds: Seeds
    result: Arrays


@dataclasses.dataclass(frozen=True)
class Portion:
    """The runs that a block contributes to a table [cell, seed]; :meth:`put` writes their values to their places.

    Args:
        result: arrays of the block.
        source: places of the runs in these arrays, along seeds and cells; of a list, along its runs.
        target: places of the runs in the table, along cells and seeds; of a list, two arrays of equal length.
        taken: which of them an earlier block has contributed already; None: none.
    """

    result: Arrays
    source: tuple[Places, Places]
    target: tuple[Places, Places]
    taken: Numbers | None = None

    def of(self, name: str) -> Numbers:
        """An array of the block for these runs, [cell, seed, its own axes…]; of a list, [run, its own axes…]."""
        array: Numbers = self.result.arrays[name]
        if self.result.zipped:
            listed: Numbers = array[self.source[0], 0]
            return listed
        chosen: Numbers = array[self.source[0]][:, self.source[1]]
        return chosen.swapaxes(0, 1)

    @property
    def ends(self) -> tuple[int, int]:
        """Its first column in the table, and the one after its last."""
        columns = self.target[1]
        return (columns.start, columns.stop) if isinstance(columns, slice) else (int(columns.min()), int(columns.max()) + 1)

    def within(self, low: int, high: int) -> Portion | None:
        """Its part in columns ``low`` up to ``high``, placed in a table that begins at ``low``; None if it has none there."""
        rows, columns = self.target
        if isinstance(columns, slice):
            first, last = max(low, columns.start), min(high, columns.stop)
            chosen: Any = slice(first - columns.start, last - columns.start)
            moved: Places = slice(first - low, last - low)
            if first >= last:
                return None
        else:
            chosen = np.flatnonzero((columns >= low) & (columns < high))
            moved = columns[chosen] - low
            if not len(chosen):
                return None
        if self.result.zipped:
            return Portion(
                self.result, (_chosen(self.source[0], chosen), slice(0)), (_chosen(rows, chosen), moved), _of(self.taken, chosen)
            )
        taken = None if self.taken is None else self.taken[:, chosen]
        return Portion(self.result, (_chosen(self.source[0], chosen), self.source[1]), (rows, moved), taken)

    def put(self, table: Numbers, values: Numbers, inner: tuple[slice, ...] = ()) -> None:
        """Write values into a table [cell, seed, ...]; ``inner`` says which part of its further axes they fill, if not all."""
        where = self.target if self.result.zipped else _grid(*self.target)
        if self.taken is not None:
            keep = self.taken.reshape(*self.taken.shape, *[1] * (values.ndim - self.taken.ndim))
            values = np.where(keep, table[(*where, *inner)], values)
        table[(*where, *inner)] = values


def _chosen(own: Places, chosen: Places) -> Places:
    """The chosen ones of some places."""
    if isinstance(own, slice) and isinstance(chosen, slice):
        return slice(own.start + chosen.start, own.start + chosen.stop)
    return np.arange(own.start, own.stop)[chosen] if isinstance(own, slice) else own[chosen]


def _of(taken: Numbers | None, chosen: Places) -> Numbers | None:
    return None if taken is None else taken[chosen]


def _grid(rows: Places, columns: Places) -> tuple[Any, Any]:
    """Indices of a rectangle in a table; slices stay slices, which NumPy reads without copying."""
    if isinstance(rows, slice) or isinstance(columns, slice):
        return rows, columns
    one, other = np.ix_(rows, columns)
    return one, other


def _length(chosen: Places) -> int:
    return chosen.stop - chosen.start if isinstance(chosen, slice) else len(chosen)


def _as_slice(chosen: Sequence[int]) -> Places:
    """Places as a slice if they are consecutive, else as an array."""
    if list(chosen) == list(range(chosen[0], chosen[0] + len(chosen))):
        return slice(chosen[0], chosen[0] + len(chosen))
    return np.asarray(chosen)


def distinct_runs(requests: Iterable[Request]) -> dict[Key, int]:
    """Number of different runs that some requests ask for, by program."""
    seeds: dict[tuple[Key, Cell], dict[Seeds, None]] = {}
    for request in requests:
        for program, swept in request.cells:
            seeds.setdefault((Runs.program_key(program), swept), {})[request.seeds] = None
    sizes = {kinds: _union_size(kinds) for kinds in {tuple(each) for each in seeds.values()}}
    counts: collections.Counter[Key] = collections.Counter()
    for (key, _), each in seeds.items():
        counts[key] += sizes[tuple(each)]
    return dict(counts)


def _union_size(several: tuple[Seeds, ...]) -> int:
    if len(several) == 1:
        return len(several[0])
    return len(np.unique(np.concatenate([seed_array(seeds, np.int64) for seeds in several])))


class Runs:
    """All finished runs of some jobs, looked up by program, cell and seed; of a duplicate run, the first copy counts."""

    def __init__(self, lazy: bool = False) -> None:
        """No runs yet; ``lazy``: arrays of shards are read only when they are asked for."""
        self.lazy = lazy
        self._blocks: dict[Key, list[Block]] = {}

    @staticmethod
    def program_key(program: Program) -> Key:
        """The key of a program, which does not depend on how its runs are executed."""
        return program.trial, program.setting, program.label

    def add(self, program: Program, cells: Sequence[Cell], seeds: Seeds, result: Arrays) -> None:
        """Add the runs of one chunk."""
        kept = list(cells) if result.zipped else {cell: i for i, cell in enumerate(cells)}
        self._blocks.setdefault(self.program_key(program), []).append(Block(kept, seeds, result))

    def has(self, chunk: Chunk) -> bool:
        """Whether every run of the chunk is here."""
        if chunk.zipped:
            return not self.lacking(chunk)
        table = {cell: [i] for i, cell in enumerate(chunk.cells)}
        taken = np.zeros((len(chunk.cells), len(chunk.seeds)), bool)
        for _ in self._portions(self.program_key(chunk.program), table, chunk.seeds, taken):
            if taken.all():
                return True
        return bool(taken.all())

    def lacking(self, chunk: Chunk) -> list[tuple[Cell, int]]:
        """The cells and seeds of those runs of a list that are not here."""
        key, cells = self.program_key(chunk.program), list(dict.fromkeys(chunk.cells))
        seeds = sorted(set(chunk.seeds))
        taken = np.zeros((len(cells), len(seeds)), bool)
        collections.deque(self._portions(key, {cell: [i] for i, cell in enumerate(cells)}, tuple(seeds), taken), maxlen=0)
        row, column = {cell: i for i, cell in enumerate(cells)}, {seed: i for i, seed in enumerate(seeds)}
        return [(cell, seed) for cell, seed in chunk.pairs if not taken[row[cell], column[seed]]]

    def _portions(self, key: Key, table: Mapping[Cell, Sequence[int]], seeds: Seeds, taken: Numbers) -> Iterator[Portion]:
        """The portions that a program's blocks contribute to a table; marks their places in ``taken``.

        Args:
            key: of the program.
            table: the rows of each cell.
            seeds: of the columns.
            taken: [cell, seed], which places are filled; changed in place.
        """
        for block in self._blocks.get(key, ()):
            portion = _from_list(block, table, seeds) if block.result.zipped else _from_rectangle(block, table, seeds)
            if portion is None:
                continue
            where = portion.target if block.result.zipped else _grid(*portion.target)
            before = taken[where].copy()
            if before.all():
                continue
            taken[where] = True
            yield dataclasses.replace(portion, taken=before) if before.any() else portion

    def dataset(self, request: Request) -> xr.Dataset:
        """One labelled Dataset: the grid's axes, ``seed``, then the observables' own axes (ragged ones padded with NaN).

        Its attributes are those of the request.

        Raises:
            KeyError: a run is missing.
            UsageError: the observables do not fit into a Dataset.
        """
        tables: dict[Key, dict[Cell, list[int]]] = {}
        for i, (program, swept) in enumerate(request.cells):
            tables.setdefault(self.program_key(program), {}).setdefault(swept, []).append(i)
        taken = np.zeros((len(request.cells), len(request.seeds)), bool)
        portions = [portion for key, table in tables.items() for portion in self._portions(key, table, request.seeds, taken)]
        if not taken.all():
            row, column = np.argwhere(~taken)[0]
            raise KeyError(f"no run of {request.cells[row]} with seed {request.seeds[column]}")
        return _labelled(request, portions, self.lazy)


def _from_rectangle(block: Block, table: Mapping[Cell, Sequence[int]], seeds: Seeds) -> Portion | None:
    """The portion that a rectangle of runs contributes to a table; None if there is none."""
    assert isinstance(block.cells, Mapping)
    common = [(i, row) for cell, rows in table.items() if (i := block.cells.get(cell)) is not None for row in rows]
    own, wanted = places(block.seeds, seeds)
    if not common or not _length(own):
        return None
    return Portion(block.result, (own, _as_slice([i for i, _ in common])), (_as_slice([row for _, row in common]), wanted))


def _from_list(block: Block, table: Mapping[Cell, Sequence[int]], seeds: Seeds) -> Portion | None:
    """The portion that a list of runs contributes to a table, duplicates once; None if there is none."""
    column = {seed: i for i, seed in enumerate(seeds)}
    found: dict[tuple[int, int], int] = {}
    for i, (cell, seed) in enumerate(zip(block.cells, block.seeds, strict=True)):
        for row in table.get(cell, ()) if seed in column else ():
            found.setdefault((row, column[seed]), i)
    if not found:
        return None
    rows, columns = np.array(list(found)).T
    return Portion(block.result, (np.array(list(found.values())), slice(0)), (rows, columns))


def _labelled(request: Request, portions: Sequence[Portion], lazy: bool) -> xr.Dataset:
    """The Dataset of a request, from portions that fill its table; with Dask arrays if ``lazy``."""
    title, run_dims, run_names = ref_to(request.trial).title, (*request.grid.axes, "seed"), (*request.grid.names, "seed")
    results = list({id(portion.result): portion.result for portion in portions}.values())
    dims = _common_dims(title, results)
    variables: dict[str, tuple[tuple[str, ...], Any]] = {}
    for name, own in dims.items():
        if DICTIONARY in own:
            raise UsageError(f"{name}{own}: an axis called {DICTIONARY} is not allowed: {TAKEN_FOR}; rename it")
        taken = [d for d in own if d in run_names]
        if taken or len(set(own)) < len(own) or name in run_names:
            word = f"an axis called {taken[0]}" if taken else "its own name" if name in run_names else "one axis twice"
            raise UsageError(f"{name}{own}: {word} clashes with the axes of the runs ({', '.join(run_names)}); rename it")
        table = Table(f"{title} returns {name}", name, (*request.grid.shape,), len(request.cells), *_common_form(name, results))
        whole = table.lazily(portions, request.seeds) if lazy else table.filled(portions, slice(0, len(request.seeds)))
        variables[name] = ((*run_dims, *own), whole)
    coords = _common_coords(title, results) | request.grid.coords()
    return xr.Dataset(variables, {**coords, "seed": seed_array(request.seeds, np.int64)}, request.attributes())


def _common_dims(trial: str, results: Sequence[Arrays]) -> dict[str, tuple[str, ...]]:
    """The axes of every observable, which must be the same in all programs."""
    first = results[0].dims
    for other in results:
        if other.dims != first:
            odd = sorted(name for name in {*first, *other.dims} if first.get(name) != other.dims.get(name))
            raise UsageError(
                f"{trial} returns {', '.join(odd)} for some settings only, or with other axes: "
                "all cells of a grid have the same observables"
            )
    return first


def _common_coords(trial: str, results: Sequence[Arrays]) -> dict[str, list[Any]]:
    """Coordinates of every axis: the longest ones that a program returns, which must begin with those of the other programs."""
    common: dict[str, list[Any]] = {}
    for axis in {axis: None for r in results for axis in r.coords}:
        given = [r.coords.get(axis) for r in results]
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


def _common_form(name: str, results: Sequence[Arrays]) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """The dtype of an observable, its largest shape, and whether it has several shapes."""
    forms = [result.form(name) for result in results]
    shapes = {shape for _, shape in forms}
    dtype = np.result_type(*{own for own, _ in forms}, *([np.float16] if len(shapes) > 1 else []))
    return dtype, tuple(max(sizes) for sizes in zip(*shapes, strict=True)), len(shapes) > 1


@dataclasses.dataclass(frozen=True)
class Table:
    """One observable of all runs, [grid axes…, seed, its own axes…]; ragged ones are padded with NaN to the largest shape.

    Args:
        what: the trial and the observable, for messages.
        name: of the observable.
        grid: the number of values on each axis of the grid.
        cells: number of cells, the product of these.
        dtype: of the table.
        inner: the largest shape along the observable's own axes.
        ragged: whether some runs have a smaller one.
    """

    what: str
    name: str
    grid: tuple[int, ...]
    cells: int
    dtype: np.dtype[Any]
    inner: tuple[int, ...]
    ragged: bool

    def filled(self, portions: Iterable[Portion], columns: slice) -> Numbers:
        """The table's columns for some consecutive seeds, from portions that have runs in these columns only.

        Raises:
            UsageError: a whole number would become a floating-point number that cannot represent it.
        """
        shape = (self.cells, columns.stop - columns.start, *self.inner)
        table = np.full(shape, np.nan, self.dtype) if self.ragged else np.empty(shape, self.dtype)
        for portion in portions:
            values = portion.of(self.name)
            if values.dtype.kind in "iu" and self.dtype.kind not in "iu" and (lost := _inexact(values)) is not None:
                why = "arrays of several lengths are padded with NaN"
                why = why if self.ragged else "other settings return numbers of another kind"
                raise UsageError(f"{self.what}={lost}, which is not allowed: {why}, and float64 does not hold this whole number")
            own = values.shape[values.ndim - len(self.inner) :]
            portion.put(table, values, tuple(map(slice, own)) if self.ragged else ())
        return table.reshape(*self.grid, *shape[1:])

    def lazily(self, portions: Sequence[Portion], seeds: Seeds) -> Any:
        """The whole table as a Dask array, cut along seeds where blocks end and where parts would be too large."""
        import dask.array as da
        from dask.delayed import delayed

        ends = {0, len(seeds), *(end for portion in portions for end in portion.ends)}
        most = max(1, PART // max(1, self.cells * int(np.prod(self.inner)) * self.dtype.itemsize))
        cuts = sorted(ends | {cut for low, high in itertools.pairwise(sorted(ends)) for cut in range(low, high, most)})
        parts = []
        for low, high in itertools.pairwise(cuts):
            own = [part for portion in portions if (part := portion.within(low, high)) is not None]
            task = delayed(functools.partial(self.filled, own, slice(low, high)), traverse=False, pure=False)()
            parts.append(da.from_delayed(task, (*self.grid, high - low, *self.inner), self.dtype))
        return da.concatenate(parts, axis=len(self.grid))


def _inexact(part: Numbers) -> int | None:
    """A whole number of an array that float64 cannot represent (its odd factor has more than 53 bits); None if there is none."""
    flat = np.ravel(part)
    size = np.abs(flat.astype(np.int64) if part.dtype.kind == "i" else flat).astype(np.uint64)
    odd = size // np.maximum(size & -size, 1)
    lost = flat[odd >= 2**53]
    return int(lost[0]) if lost.size else None
