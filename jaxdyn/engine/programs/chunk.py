"""What is run: programs, chunks of their runs, jobs, and the arrays that come out; small picklable descriptions.

A chunk is a rectangular block *seeds x cells* of one program, or a list of runs;
:func:`jaxdyn.engine.programs.program.run_chunk` turns it into a result.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

from jaxdyn.engine.base.devices import devices
from jaxdyn.engine.base.reference import Ref
from jaxdyn.engine.base.syntax import code_hash
from jaxdyn.engine.claims.resource import identity_of
from jaxdyn.engine.storage.seeds import Seeds, seeds_of

__all__ = ["RUNNER", "Chunk", "Job", "Program", "flags", "in_one_room", "program_name", "runner", "switches", "versions"]

# modules that turn values and seeds into the arguments of a program, and what it returns into what is stored
RUNNER = (
    *("claims/code_field", "claims/observables", "claims/setting", "programs/program", "programs/sequential"),
    *("programs/tracing", "storage/seeds", "storage/shard"),
)
ENGINE = Path(__file__).parents[1]


@functools.cache
def versions() -> dict[str, str]:
    """The versions that the bits of a program's runs depend on: of the compiler, and of SciPy, whose LAPACK JAX calls on CPU."""
    found = {}
    for package in ("jax", "jaxlib", "scipy", "libtpu", "jax-cuda13-pjrt", "jax-cuda13-plugin"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def switches() -> tuple[str, ...]:
    """The switches of JAX and equinox that can change the text of a program."""
    names = ("jax_default_prng_impl", "jax_threefry_partitionable", "jax_numpy_dtype_promotion")
    return f"EQX_ON_ERROR={os.environ.get('EQX_ON_ERROR')}", *(f"{name}={jax.config.values.get(name)}" for name in names)


def flags() -> tuple[str, ...]:
    """The variables by which compilers and BLAS are told how to work, which can change a run's bits."""
    return tuple(f"{name}={os.environ.get(name, '')}" for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "OPENBLAS_CORETYPE"))


@functools.cache
def runner() -> list[str]:
    """Hashes of the code that makes arrays of a traced trial: what a fingerprint cannot tell."""
    return [code_hash((ENGINE / f"{name}.py").read_bytes()) for name in RUNNER]


@dataclass(frozen=True)
class Program:
    """What is compiled: a trial, its static fields, and how it is executed (``vmap``, ``map`` or ``flat`` over runs).

    ``fingerprint`` is that of its text (:mod:`jaxdyn.engine.programs.fingerprint`) where the runs were planned.
    """

    trial: Ref
    setting: Ref
    static: tuple[tuple[str, Any], ...] = field(compare=False)
    executor: str = "auto"
    compiler: str = "full"  # how hard XLA tries: full, quick or light
    fingerprint: str = ""
    label: str = field(init=False, repr=False)  # stands for the static fields in comparisons: to Python, 1 and True are equal

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", repr(self.static))

    def identity(self) -> str:
        """Hash of all that can change a run's bits, except the chunk's shape.

        Fingerprint, shared arrays, executor, compiler, versions, flags, devices, and the modules between a trial and its arrays.
        Taken where the sweep is planned and carried by every chunk, so that workers on other devices write where the planner looks.
        """
        facts = self.fingerprint, identity_of(self), self.executor, self.compiler, versions(), flags(), devices().bits, runner()
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Chunk:
    """A block of runs: ``cells`` (values of the swept fields) x ``seeds``; or, if ``zipped``, each cell with the seed of its place.

    ``store`` is the folder of its shard, if any; ``group``: upper limit on runs at once on a device, 0 for no limit;
    ``axes``: names that its observables must not have, since every grid that asks for these runs has them;
    ``room``: for how many cells and seeds it is compiled, at least its own.
    """

    program: Program
    cells: tuple[tuple[Any, ...], ...]
    seeds: Seeds
    store: str | None = None
    program_id: str = ""
    group: int = 0
    axes: tuple[str, ...] = ()
    room: tuple[int, int] = (0, 0)
    zipped: bool = False

    def identity(self) -> str:
        """Content address of the shard: the program, the swept values and the seeds."""
        facts = repr((self.program_id, self.cells, seeds_of(self.seeds), *(["zipped"] if self.zipped else [])))
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
    """One program and its chunks; ``done`` are those of the chunks whose runs are stored."""

    program: Program
    chunks: list[Chunk]
    done: list[Chunk] = field(default_factory=list)

    @property
    def left(self) -> list[Chunk]:
        """The chunks whose runs are not stored."""
        done = set(map(id, self.done))
        return [chunk for chunk in self.chunks if id(chunk) not in done]

    @property
    def runs(self) -> int:
        """Runs in all chunks."""
        return sum(c.runs for c in self.chunks)


def program_name(program: Program) -> str:
    """The key of a program in the files of times: its trial and its static fields."""
    return f"{program.trial.title} {program.static}"
