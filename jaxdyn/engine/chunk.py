"""What is run: programs, chunks of their runs, jobs, and the arrays that come out; small picklable descriptions.

A chunk is a rectangular block *seeds x cells* of one program, or a list of runs; :func:`jaxdyn.engine.program.run_chunk` turns it
into a result.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

import jax
import numpy as np

from jaxdyn.engine.devices import devices
from jaxdyn.engine.reference import Ref
from jaxdyn.engine.resource import identity_of
from jaxdyn.engine.sources import doubts, source_hash

__all__ = ["UNSEEN", "Chunk", "Job", "Program", "Result", "flags", "in_one_room", "versions"]


UNSEEN = "unseen-"  # in the names of shards that only the call that wrote them uses


@functools.cache
def versions() -> dict[str, str]:
    """The versions that a run's bits can depend on."""
    return {p: version(p) for p in ("jax", "jaxlib", "diffrax", "optax", "numpy")}


def flags() -> tuple[str, ...]:
    """Python's version, and the switches of XLA and JAX that can change a run's bits."""
    names = ("jax_default_prng_impl", "jax_threefry_partitionable", "jax_numpy_dtype_promotion")
    return platform.python_version(), os.environ.get("XLA_FLAGS", ""), *(f"{name}={jax.config.values.get(name)}" for name in names)


@dataclass(frozen=True)
class Program:
    """What is compiled: a trial, its static fields, and how it is executed (``vmap``, ``map`` or ``flat`` over runs)."""

    trial: Ref
    setting: Ref
    static: tuple[tuple[str, Any], ...] = field(compare=False)
    executor: str = "auto"
    compiler: str = "full"  # how hard XLA tries: full, quick or light
    values: str = field(default="", compare=False)  # what the trial's names held where it was planned, as a hash
    label: str = field(init=False, repr=False)  # stands for the static fields in comparisons: to Python, 1 and True are equal

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", repr(self.static))

    def identity(self) -> str:
        """Hash of all that can change a run's bits, except the chunk's shape: sources, static fields, resource, versions, device.

        Taken where the sweep is planned and carried by every chunk, so that workers on other devices write where the planner looks.
        Shards of a trial that may read what is not seen are marked, and are not used by another call.
        """
        where = devices()
        device = where.platform, where.count
        sources = [source_hash(self.trial), source_hash(self.setting)]
        facts = [str(self.trial), *sources, self.label, self.executor, self.compiler, versions(), flags(), device]
        facts += filter(None, [identity_of(self)])
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:20]
        return f"{UNSEEN}{digest}" if doubts(self.trial) or doubts(self.setting) else digest


@dataclass(frozen=True)
class Chunk:
    """A block of runs: ``cells`` (values of the swept fields) x ``seeds``; or, if ``zipped``, each cell with the seed of its place.

    ``store`` is the folder of its shard, if any; ``group``: upper limit on runs at once on a device, 0 for no limit;
    ``axes``: names that its observables must not have, since every grid that asks for these runs has them;
    ``room``: for how many cells and seeds it is compiled, at least its own.
    """

    program: Program
    cells: tuple[tuple[Any, ...], ...]
    seeds: tuple[int, ...]
    store: str | None = None
    program_id: str = ""
    group: int = 0
    axes: tuple[str, ...] = ()
    room: tuple[int, int] = (0, 0)
    zipped: bool = False

    def identity(self) -> str:
        """Content address of the shard: the program, the swept values and the seeds."""
        facts = repr((self.program_id, self.cells, self.seeds, *(["zipped"] if self.zipped else [])))
        return hashlib.sha256(facts.encode()).hexdigest()[:20]

    @property
    def runs(self) -> int:
        """How many runs the block holds."""
        return len(self.seeds) * (1 if self.zipped else len(self.cells))

    @property
    def pairs(self) -> list[tuple[tuple[Any, ...], int]]:
        """The cell and the seed of every run, in the order of :class:`Result`."""
        if self.zipped:
            return list(zip(self.cells, self.seeds, strict=True))
        return [(cell, seed) for seed in self.seeds for cell in self.cells]

    def part(self, pairs: Sequence[tuple[tuple[Any, ...], int]]) -> Chunk:
        """Some runs of a zipped chunk, which are compiled as the whole is."""
        return replace(self, cells=tuple(cell for cell, _ in pairs), seeds=tuple(seed for _, seed in pairs), room=self.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """For how many cells and seeds it is compiled."""
        return max(self.room[0], len(self.cells)), max(self.room[1], len(self.seeds))


def in_one_room(chunks: Sequence[Chunk], compile_seconds: float, run_seconds: float, most: int) -> list[Chunk]:
    """Chunks of a program under ``vmap``, compiled once for the largest where that costs less than the runs that fill it up.

    Args:
        chunks: all of the program.
        compile_seconds: of all shapes together, as they are kept.
        run_seconds: of one run.
        most: runs that fit into the memory.
    """
    shapes = {c.shape for c in chunks}
    room = max(cells for cells, _ in shapes), max(seeds for _, seeds in shapes)
    filling = sum(room[0] * room[1] - c.runs for c in chunks)
    if room[0] * room[1] > most or filling * run_seconds > (1 - 1 / len(shapes)) * compile_seconds:
        return list(chunks)
    return [replace(c, room=room) for c in chunks]


@dataclass
class Job:
    """One program and its chunks; ``done`` are the chunks whose runs are stored."""

    program: Program
    chunks: list[Chunk]
    done: list[Chunk] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """Runs in all chunks."""
        return sum(c.runs for c in self.chunks)


@dataclass(frozen=True)
class Result:
    """Arrays of a chunk, their axis names and coordinates, and what it cost.

    Leading axes: seed and cell; if ``zipped``, the run and one of length 1.
    """

    arrays: dict[str, np.ndarray[Any, Any]]
    dims: dict[str, tuple[str, ...]]
    coords: dict[str, tuple[Any, ...]]
    facts: dict[str, Any] = field(default_factory=dict)
    zipped: bool = False
