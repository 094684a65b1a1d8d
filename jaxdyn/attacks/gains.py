"""Predictions of a claim's runs with a gain on one number of the theory at a time; networks are not trained again."""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from jaxdyn.attacks.division import Division, divide
from jaxdyn.attacks.equations import Flat, Known, Slot, evaluate, flatten, is_loop, slots, values_of
from jaxdyn.engine.claims.resource import shared_by
from jaxdyn.engine.programs.chunk import Program
from jaxdyn.engine.programs.direct import facts_of
from jaxdyn.engine.programs.program import known_options
from jaxdyn.engine.programs.tracing import swept_arrays, traced
from jaxdyn.engine.runs.blocks import Request, Runs
from jaxdyn.engine.storage.arrays import Arrays
from jaxdyn.engine.storage.seeds import seed_array

__all__ = ["ROWS", "Law", "Row"]

Numbers: TypeAlias = "np.ndarray[Any, Any]"
Row: TypeAlias = "tuple[Slot, float] | None"  # a slot and its gain; None: no gain
ROOM = 2**26  # bytes of a theory's values at once
ROWS = 32  # rows of gains in a block, for which a theory is compiled once
RUNS, FEW = 16, 4  # runs in a block: of equations alone, and where the theory has a loop, so that few wait for the slowest


@dataclasses.dataclass(frozen=True)
class Part:
    """One program's share of a law.

    Args:
        program: with its fingerprint.
        flat: its equations.
        division: which of them are the theory's.
        slots: where gains can be given.
        cells: values of the swept fields.
    """

    program: Program
    flat: Flat
    division: Division
    slots: Mapping[Slot, tuple[int, int]]
    cells: tuple[tuple[Any, ...], ...]

    @functools.cached_property
    def _boundary(self) -> list[int]:
        """The values that the theory starts from: made before it, and used in it or predictions themselves."""
        own = {out for i in self.division.after for out in self.flat.equations[i].outs}
        used = [v for i in self.division.after for v in self.flat.equations[i].ins if not isinstance(v, Known)]
        return sorted({v for v in (*used, *values_of(self.flat, self.flat.results.predicted)) if v not in own})

    @functools.cached_property
    def _before(self) -> Callable[..., Any]:
        """What the theory starts from, of a block of runs."""

        def one(run: Any, shared: Any) -> list[Any]:
            env: dict[int, Any] = dict(enumerate(jax.tree.leaves((*run, shared))))
            evaluate(self.flat, self.division.before, env, {}, self.division.cut)
            return [jnp.zeros(()), *(env[v] for v in self._boundary)]  # never empty: a law may be one of constants

        batch = 1 if self.trains and self.program.executor == "map" else self._runs_at_once
        return _compiling(lambda runs, shared: jax.lax.map(lambda run: one(run, shared), runs, batch_size=batch))

    @functools.cached_property
    def _after(self) -> Callable[..., Any]:
        """Predictions of a block of runs for a block of rows of gains, [run, row, …]."""
        outs = [self.flat.outs[item.value] for item in self.flat.results.predicted.values()]

        def one(start: Any, gains: Any) -> list[Any]:
            env = dict(zip(self._boundary, start[1:], strict=True))
            evaluate(self.flat, self.division.after, env, {slot: gains[k] for k, slot in enumerate(self.slots.values())})
            return [jnp.asarray(out.value) if isinstance(out, Known) else env[out] for out in outs]

        def block(starts: Any, table: Any) -> Any:
            return jax.lax.map(
                lambda start: jax.vmap(lambda gains: one(start, gains))(table), starts, batch_size=self._runs_at_once
            )

        return _compiling(block)

    @property
    def trains(self) -> bool:
        """Whether a network is trained before the theory begins."""
        return self.division.trains(self.flat)

    @functools.cached_property
    def _runs(self) -> int:
        """Number of runs in a block."""
        return FEW if any(is_loop(self.flat.equations[i]) for i in self.division.after) else RUNS

    @property
    def _runs_at_once(self) -> int:
        size = ROWS * sum(_size(self.flat, i) for i in self.division.after)
        return max(1, min(self._runs, ROOM // max(1, size)))

    def predictions(self, rows: Sequence[Row], runs: Sequence[tuple[tuple[Any, ...], int]]) -> dict[str, Numbers]:
        """Predictions, [row, run, …], with the gain of each row, of runs given by their cells and seeds."""
        order = {slot: k for k, slot in enumerate(self.slots)}
        table = np.ones((-(-len(rows) // ROWS) * ROWS, max(1, len(order))))
        for r, row in enumerate(rows):
            if row is not None and row[0] in order:
                table[r, order[row[0]]] = row[1]
        parts = [self._of_block(table, runs[i : i + self._runs]) for i in range(0, len(runs), self._runs)]
        whole = [np.concatenate([part[k] for part in parts])[: len(runs), : len(rows)] for k in range(len(parts[0]))]
        return {name: np.swapaxes(values, 0, 1) for name, values in zip(self.flat.results.predicted, whole, strict=True)}

    def _of_block(self, table: Numbers, runs: Sequence[tuple[tuple[Any, ...], int]]) -> list[Numbers]:
        """The predictions of a block of runs, [run, row, …]; it is filled with its last run."""
        filled = [*runs, *[runs[-1]] * (self._runs - len(runs))]
        swept, seeds = swept_arrays(self.program, [cell for cell, _ in filled]), seed_array(tuple(seed for _, seed in filled))
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            starts = self._before((swept, seeds), shared_by(self.program))
            found = [self._after(starts, table[i : i + ROWS]) for i in range(0, len(table), ROWS)]
        return [np.concatenate([np.asarray(part[k]) for part in found], 1)[: len(runs)] for k in range(len(found[0]))]


def _compiling(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled at its first call for arguments of those shapes."""
    compiled: list[Any] = []

    def call(*args: Any) -> Any:
        if not compiled:
            compiled.append(jax.jit(function).lower(*args).compile(compiler_options=known_options("light")))
        return compiled[0](*args)

    return call


def _size(flat: Flat, place: int) -> int:
    """Bytes of an equation's outputs."""
    return sum(
        int(np.prod(v.aval.shape)) * v.aval.dtype.itemsize for v in flat.equations[place].eqn.outvars if hasattr(v.aval, "shape")
    )


@dataclasses.dataclass(frozen=True)
class Law:
    """The theory's side of a claim's trial, in all its programs."""

    request: Request
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, request: Request) -> Law:
        """The law behind some requested runs, traced."""
        cells: dict[Any, list[tuple[Any, ...]]] = collections.defaultdict(list)
        for program, swept in request.cells:
            cells[program].append(swept)
        parts = []
        for program, facts in facts_of(cells).items():
            known = dataclasses.replace(program, fingerprint=facts["fingerprint"], executor=facts["executor"])
            flat, own = flatten(traced(known)), tuple(dict.fromkeys(cells[program]))
            division = divide(flat, known, own[0])
            parts.append(Part(known, flat, division, slots(flat, division.theory), own))
        return cls(request, tuple(parts))

    @property
    def slots(self) -> list[Slot]:
        """All slots of all programs."""
        return list(dict.fromkeys(slot for part in self.parts for slot in part.slots))

    @property
    def trains(self) -> bool:
        """Whether predictions start from what a network's training gives."""
        return any(part.trains for part in self.parts)

    def predictions(self, rows: Sequence[Row], seeds: Any) -> Iterator[xr.Dataset]:
        """For each row a Dataset of the predictions of all runs, labelled as the trial's are."""
        request = dataclasses.replace(self.request, seeds=seeds)
        listed = [[(cell, seed) for seed in request.seeds for cell in part.cells] for part in self.parts]
        for first in range(0, len(rows), ROWS):
            some = rows[first : first + ROWS]
            found = [part.predictions(some, runs) for part, runs in zip(self.parts, listed, strict=True)]
            for r in range(len(some)):
                yield self._labelled(request, listed, [{name: values[r] for name, values in each.items()} for each in found])

    def _labelled(self, request: Request, listed: Sequence[Any], found: Sequence[Mapping[str, Numbers]]) -> xr.Dataset:
        runs = Runs()
        for part, pairs, arrays in zip(self.parts, listed, found, strict=True):
            results = part.flat.results
            dims = {f"predicted_{name}": item.dims for name, item in results.predicted.items()}
            used = {axis for own in dims.values() for axis in own}
            coords = {axis: values for axis, values in dict(results.coords).items() if axis in used}
            named = {f"predicted_{name}": values[:, None] for name, values in arrays.items()}
            cells, seeds = [cell for cell, _ in pairs], tuple(seed for _, seed in pairs)
            runs.add(part.program, cells, seeds, Arrays(named, dims, coords, zipped=True))
        return runs.dataset(request)

    @functools.cached_property
    def effects(self) -> tuple[dict[str, Numbers], dict[Slot, dict[str, Numbers]]]:
        """Predictions in some runs of each program, and those with each slot at twice its value."""
        rows: list[Row] = [None, *((slot, 2.0) for slot in self.slots)]
        found: list[dict[str, Numbers]] = [{} for _ in rows]
        for p, part in enumerate(self.parts):
            cells = [part.cells[i] for i in sorted({0, len(part.cells) // 2, len(part.cells) - 1})]
            runs = [(cell, self.request.seeds[min(k, len(self.request.seeds) - 1)]) for k, cell in enumerate(cells)]
            for name, values in part.predictions(rows, runs).items():
                for r in range(len(rows)):
                    found[r][f"{p} {name}"] = values[r]
        return found[0], dict(zip(self.slots, found[1:], strict=True))
