"""Small picklable descriptions of work: programs, chunks of their runs, and jobs.

A chunk is a rectangular block *seeds x cells* of one program, or a list of runs;
:func:`jaxdyn.engine.programs.program.run_chunk` turns it into a result.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
from jaxlib import xla_client

from jaxdyn.engine.base.devices import devices
from jaxdyn.engine.base.reference import Ref, edited
from jaxdyn.engine.base.syntax import code_hash
from jaxdyn.engine.claims.resource import identity_of
from jaxdyn.engine.storage.seeds import Seeds, seeds_of

__all__ = ["DIGEST", "RUNNER", "Chunk", "Job", "Program", "flags", "in_one_room", "program_name", "runner", "switches", "versions"]

# modules that turn values and seeds into arguments of a program, and its results into stored arrays
RUNNER = (
    *("claims/code_field", "claims/observables", "claims/setting", "programs/program", "programs/sequential"),
    *("programs/tracing", "storage/seeds", "storage/shard"),
)
ENGINE = Path(__file__).parents[1]
# names of JAX's options of logs, caches, debugging and machines, which leave programs as they are
ELSEWHERE = re.compile(
    r"(?:^|_)(?:address(?:es)?|backend|cache|captured|collectives|debug|devices|dumps?|explain|log(?:ging)?|pgle|platforms?|pprint"
    r"|profil(?:e|ing)|source|timeout|topology|tracebacks?)(?:_|$)"
)
# options of JAX that change how a program is compiled, and not its text, with their usual values
COMPILING = {
    "jax_compiler_enable_remat_pass": True,
    "jax_disable_most_optimizations": False,
    "jax_exec_time_optimization_effort": 0.0,
    "jax_memory_fitting_effort": 0.0,
    "jax_memory_fitting_level": "O2",
    "jax_optimization_level": "UNKNOWN",
    "jax_use_magma": "auto",
}
DIGEST = "digest"  # the static field that holds the digest of a text
VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "OPENBLAS_CORETYPE")
AT_IMPORT = {name: os.environ.get(name, "") for name in VARIABLES}


@functools.cache
def versions() -> dict[str, str]:
    """Versions of the packages that can change a run's bits: the compiler, and SciPy, whose LAPACK JAX calls on CPU."""
    found = {}
    for package in ("jax", "jaxlib", "scipy", "libtpu", "jax-cuda13-pjrt", "jax-cuda13-plugin"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def switches() -> tuple[str, ...]:
    """Options of JAX and equinox that can change the text of a program, with their values.

    All options of JAX are taken for such, also those of a later version, but for those whose names speak of something else.
    """
    options = (f"{name}={value}" for name, value in jax.config.values.items() if not ELSEWHERE.search(name))
    return f"EQX_ON_ERROR={os.environ.get('EQX_ON_ERROR')}", *sorted(options)


def flags() -> tuple[str, ...]:
    """What configures compilers and BLAS and can change a run's bits: environment variables, and changed options of JAX."""
    values = jax.config.values
    changed = (f"{name}={values[name]}" for name, usual in COMPILING.items() if values.get(name, usual) != usual)
    return f"XLA_FLAGS={_xla_options()}", *(f"{name}={_given(name)}" for name in VARIABLES[1:]), *changed


def _given(name: str) -> str:
    """A variable that its reader may have read before it was changed: its value, or both values."""
    return " then ".join(dict.fromkeys((AT_IMPORT[name], os.environ.get(name, ""))))


def _xla_options() -> str:
    """Hash of the options that XLA has read, once per process, from ``XLA_FLAGS`` or a file named there; empty if none are given.

    Whether some were given is asked of the variable as the process got it, as this module found it, and as it is now.
    """
    given = (_at_start(VARIABLES[0]), AT_IMPORT[VARIABLES[0]], os.environ.get(VARIABLES[0], ""))
    if not any(given):
        return ""
    return hashlib.sha256(xla_client.CompileOptions().SerializeAsString()).hexdigest()[:20]


@functools.cache
def _at_start(name: str) -> str:
    """A variable as the process got it; empty where the system does not tell."""
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next(
        (entry.partition(b"=")[2].decode(errors="replace") for entry in entries if entry.startswith(f"{name}=".encode())), ""
    )


@functools.cache
def runner() -> list[str]:
    """Hashes of the code around a trial, which turns seeds into arguments and results into arrays: fingerprints do not cover it."""
    files = [ENGINE / f"{name}.py" for name in RUNNER]
    return [code_hash(file.read_bytes()) + edited(file) for file in files]


@dataclass(frozen=True)
class Program:
    """A trial with fixed static fields, and how its runs are executed (``vmap``, ``map`` or ``flat``): one compiled function.

    ``fingerprint`` is the hash of its text (:mod:`jaxdyn.engine.programs.fingerprint`) in the process that planned the runs.
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
        """Hash of everything that can change a run's bits, except the chunk's shape.

        Fingerprint, shared arrays, executor, compiler, versions, flags, devices, and the modules between a trial and its arrays.
        Computed by the planner and carried by every chunk, so that workers on other devices write where the planner looks.
        """
        facts = self.fingerprint, identity_of(self), self.executor, self.compiler, versions(), flags(), devices().bits, runner()
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Chunk:
    """A block of runs: ``cells`` (values of the swept fields) x ``seeds``; or, if ``zipped``, the i-th cell with the i-th seed.

    ``store``: folder of its shard, if it is stored; ``group``: upper limit on runs at once on a device, 0 for no limit;
    ``axes``: names that its observables must not have, since every grid that asks for these runs has them;
    ``room``: numbers of cells and seeds for which it is compiled, at least its own.
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
        """Content address of the shard: a hash of the program, the swept values and the seeds."""
        facts = repr((self.program_id, self.cells, seeds_of(self.seeds), *(["zipped"] if self.zipped else [])))
        return hashlib.sha256(facts.encode()).hexdigest()[:20]

    @property
    def runs(self) -> int:
        """Number of runs in the block."""
        return len(self.seeds) * (1 if self.zipped else len(self.cells))

    @property
    def pairs(self) -> list[tuple[tuple[Any, ...], int]]:
        """The cell and the seed of every run, in the order of the result's arrays."""
        if self.zipped:
            return list(zip(self.cells, self.seeds, strict=True))
        return [(cell, seed) for seed in self.seeds for cell in self.cells]

    def part(self, pairs: Sequence[tuple[tuple[Any, ...], int]]) -> Chunk:
        """A chunk with some runs of this zipped one, compiled in the shape of the whole."""
        return replace(self, cells=tuple(cell for cell, _ in pairs), seeds=tuple(seed for _, seed in pairs), room=self.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of cells and seeds for which it is compiled."""
        return max(self.room[0], len(self.cells)), max(self.room[1], len(self.seeds))


def in_one_room(chunks: Sequence[Chunk], compile_seconds: float, run_seconds: float, most: int) -> list[Chunk]:
    """Chunks of a program under ``vmap``, given one common shape where padding to it costs less than compiling every shape.

    Args:
        chunks: all chunks of the program.
        compile_seconds: to compile all their shapes.
        run_seconds: of one run.
        most: number of runs that fit into the memory.
    """
    shapes = {c.shape for c in chunks}
    room = max(cells for cells, _ in shapes), max(seeds for _, seeds in shapes)
    filling = sum(room[0] * room[1] - c.runs for c in chunks)
    if room[0] * room[1] > most or filling * run_seconds > (1 - 1 / len(shapes)) * compile_seconds:
        return list(chunks)
    return [replace(c, room=room) for c in chunks]


@dataclass
class Job:
    """A program and its chunks; ``done`` lists the chunks whose runs are stored."""

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
        """Number of runs in all chunks."""
        return sum(c.runs for c in self.chunks)


def program_name(program: Program) -> str:
    """The key of a program in files of costs: its trial and its static fields, without the digest of a text."""
    return f"{program.trial.title} {tuple(one for one in program.static if one[0] != DIGEST)}"
