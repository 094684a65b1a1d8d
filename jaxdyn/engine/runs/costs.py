"""Costs of programs: as timed on this machine (in the user's cache folder), else on a reference machine (shipped).

They order programs, longest first, and give the expected minutes. Times of this machine are stored by platform. The reference
machine is a CPU: on other platforms its costs order programs but give no minutes. ``jaxdyn.maintain costs`` writes the shipped
file, ``costs.json``.
"""

from __future__ import annotations

import ast
import functools
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jaxdyn.engine.base.devices import devices
from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.engine.programs.chunk import DIGEST, Job, Program, program_name
from jaxdyn.engine.storage.cache import read_cached, write_cached

__all__ = [
    "REFERENCE",
    "cached_name",
    "calibrate",
    "expected",
    "guessed",
    "program_times",
    "read_costs",
    "reference_times",
    "remember",
    "runs_within",
    "tracing_seconds",
]

COMPILE, RUN = 4.0, 0.05  # seconds to compile a program and to make a run, for programs that were never timed
REFERENCE = Path(__file__).parents[1] / "costs.json"
CACHED = "timings.jsonl"
TRACING = 0.3  # share of a program's compile time that the compilation cache cannot save
NO_SIZES = ("every",)  # integer static fields that do not lengthen a run
LOOPS, REPEATS = 10_000, 50  # of the calibration: half a millisecond each, so that some are not interrupted

Times = tuple[float, float]  # seconds to compile a program, and to make one of its runs


class ProgramTimes(NamedTuple):
    """Cost of a program on this machine."""

    compile_seconds: float
    run_seconds: float  # of one run
    compiled: str = ""  # what was compiled last, which is in the compilation cache
    again: float | None = None  # seconds to get it from there


def cached_name(platform: str) -> str:
    """Name of the cached file with the costs of programs on a platform of this machine."""
    return CACHED if platform == "cpu" else f"{platform}-{CACHED}"


@functools.cache
def measured_costs(platform: str = "cpu") -> dict[str, ProgramTimes]:
    """Costs of programs on this machine's devices of a platform, by name; empty without a usable file."""
    try:
        read = read_cached(cached_name(platform)).items()
        return {name: ProgramTimes(float(a), float(b), str(c), d if d is None else float(d)) for name, (a, b, c, d) in read}
    except (ValueError, TypeError, AttributeError):
        return {}


@functools.cache
def shipped_costs() -> tuple[float, dict[str, Times]]:
    """:func:`read_costs` of the shipped file."""
    return read_costs(REFERENCE)


def read_costs(file: Path) -> tuple[float, dict[str, Times]]:
    """Calibration of the reference machine, and costs of programs in its seconds; 0 and an empty dict without a usable file."""
    try:
        shipped = parse_json(file.read_text(encoding="utf-8"))
        calibration = float(shipped["calibration_seconds"])
        return calibration, {name: (float(a), float(b)) for name, (a, b) in shipped["programs"].items() if calibration > 0}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return 0.0, {}


@functools.cache
def reference_costs() -> dict[str, Times]:
    """Costs of programs on the reference machine, converted to seconds of this one."""
    calibration, programs = shipped_costs()
    slower = calibrate() / calibration if programs else 1.0
    return {name: (slower * a, slower * b) for name, (a, b) in programs.items()}


def runs_within(seconds: float, program: Program) -> int:
    """Number of runs of a program that the reference machine makes in this time, at least 1; the same on every machine."""
    return max(1, int(seconds / max(reference_times(program)[1], 1e-9)))


def reference_times(program: Program) -> Times:
    """Cost of a program on the reference machine, in its seconds; the same on every machine."""
    programs = shipped_costs()[1]
    return programs.get(program_name(program)) or cost_alike(program, programs) or (COMPILE, RUN)


def cost_alike(program: Program, costs: Mapping[str, Times]) -> Times | None:
    """Estimated cost from the program of the same trial that differs in the fewest fields; None if the trial has none.

    A run is taken to cost in proportion to the sizes in these fields: a rough estimate, too low where the cost grows faster, but
    enough to tell minutes from days.
    """
    own = {name: value for name, value in program.static if name != DIGEST}
    candidates: list[tuple[int, float, Times]] = []
    for name, times in costs.items():
        trial, _, text = name.partition(" ")
        if trial == program.trial.title and (other := _fields(text)) is not None:
            changed = [field for field in own if other.get(field) != own[field]]
            larger = math.prod(value_size(own[f]) / value_size(other.get(f)) for f in changed if f not in NO_SIZES)
            candidates.append((len(changed), larger, times))
    if not candidates:
        return None
    _, larger, (compile_seconds, per_run) = min(candidates, key=lambda each: (each[0], -each[1] * each[2][1]))
    return compile_seconds, larger * per_run


@functools.cache
def _fields(text: str) -> dict[str, Any] | None:
    """A program's static fields from its name; None if a value is not a literal."""
    try:
        return dict(ast.literal_eval(text))
    except (ValueError, TypeError, SyntaxError):
        return None


def value_size(value: Any) -> float:
    """Size of a field's value: a whole number itself, digits as text their square, a tuple the sum of its entries; else 1."""
    if isinstance(value, tuple):
        return sum(map(value_size, value)) or 1.0
    if isinstance(value, str):
        return max(float(value), 1.0) ** 2 if value.isdecimal() else 1.0
    return float(value) if isinstance(value, int) and value > 1 else 1.0


def calibrate() -> float:
    """Seconds of a fixed computation in Python on one core, the best of many, by which machines are compared."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        total = 0
        for i in range(LOOPS):
            total += i * i % 7
        best = min(best, time.perf_counter() - start)
    return best


def _met() -> dict[str, ProgramTimes]:
    """Costs of programs that ran on the devices for which plans are made."""
    return measured_costs(devices().platform)


def _compiled(job: Job) -> str:
    """Name of what a job compiles: its program, and the shape of its chunks unless it runs under ``map``."""
    cells, seeds = job.chunks[0].shape
    return job.program.identity() + ("" if job.program.executor == "map" else f" {cells}x{seeds}")


def expected(job: Job) -> float:
    """Expected seconds for the chunks of a job that are not stored."""
    runs = sum(c.runs for c in job.left)
    if runs == 0:
        return 0.0
    compile_seconds, per_run = program_times(job.program)
    times = _met().get(program_name(job.program))
    if times is not None and times.compiled == _compiled(job):
        compile_seconds = TRACING * compile_seconds if times.again is None else times.again
    return compile_seconds + per_run * runs


def program_times(program: Program) -> Times:
    """Expected cost of a program on this machine, by its name and static fields alone."""
    name = program_name(program)
    if (times := _met().get(name)) is not None:
        return times.compile_seconds, times.run_seconds
    costs = {**reference_costs(), **{n: (m.compile_seconds, m.run_seconds) for n, m in _met().items()}}
    return reference_costs().get(name) or cost_alike(program, costs) or (COMPILE, RUN)


def tracing_seconds(program: Program, times: Mapping[str, float]) -> float:
    """Expected seconds of tracing a program: as long as its last tracing of ``times``, or else a share of its compilation."""
    return times.get(program_name(program), TRACING * program_times(program)[0])


def guessed(job: Job) -> bool:
    """Whether a job has runs left and its program was never timed at its size, here or, on CPU, on the reference machine."""
    left, name = bool(job.left), program_name(job.program)
    return left and name not in _met() and not (devices().on_cpu and name in reference_costs())


def remember(jobs: list[Job], costs: Mapping[Program, Any]) -> None:
    """Write the costs of this call's programs to the cache."""
    times = dict(_met())
    for job in jobs:
        cost = costs.get(job.program)
        if isinstance(cost, dict) and cost["runs"]:
            name, compiled, seconds = program_name(job.program), _compiled(job), cost["compile_seconds"]
            old = times.get(name, ProgramTimes(0.0, 0.0))
            again = seconds if old.compiled == compiled else None
            # a compilation that the cache answers does not measure compilation
            times[name] = ProgramTimes(max(seconds, old.compile_seconds), cost["run_seconds"] / cost["runs"], compiled, again)
    write_cached(cached_name(devices().platform), times)
    measured_costs.cache_clear()
