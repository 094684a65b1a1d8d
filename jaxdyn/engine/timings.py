"""What programs cost: on this machine (remembered in the user's cache folder), else on a reference machine (shipped).

For planning, longest first, and for the announced minutes. ``python -m jaxdyn.engine.timings DIR`` writes the shipped file,
``costs.json``, from the results of a verification that compiled everything itself.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxdyn.engine.cache import cache_dir
from jaxdyn.errors import UsageError

if TYPE_CHECKING:
    from jaxdyn.engine.chunk import Program
    from jaxdyn.engine.sweep import Job

__all__ = ["expected", "guessed", "remember", "runs_within", "write_reference"]

COMPILE, RUN = 4.0, 0.05  # seconds for a program, and for a run, that no machine has met
REFERENCE = Path(__file__).with_name("costs.json")
TRACING = 0.3  # share of a program's compilation that the compilation cache cannot save
NO_SIZES = ("every",)  # static numbers that make a run no longer
LOOPS, REPEATS = 10_000, 50  # of the calibration: half a millisecond, so that some of them are not interrupted

Times = tuple[float, float]  # seconds to compile a program, and to make one of its runs


def _file() -> Path:
    return cache_dir() / "timings.json"


class Met(NamedTuple):
    """What a program cost on this machine."""

    compile_seconds: float
    run_seconds: float  # of one run
    compiled: str = ""  # what was compiled last: it is in the compilation cache
    again: float | None = None  # seconds to get it from there


@functools.cache
def _known() -> dict[str, Met]:
    """What programs cost on this machine."""
    try:
        known = json.loads(_file().read_text())
        return {name: Met(float(a), float(b), str(c), d if d is None else float(d)) for name, (a, b, c, d) in known.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


@functools.cache
def _shipped() -> tuple[float, dict[str, Times]]:
    """Calibration of the reference machine, and what programs cost there in its own seconds."""
    try:
        shipped = json.loads(REFERENCE.read_text())
        calibration = float(shipped["calibration_seconds"])
        return calibration, {name: (float(a), float(b)) for name, (a, b) in shipped["programs"].items() if calibration > 0}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return 0.0, {}


@functools.cache
def _reference() -> dict[str, Times]:
    """What programs cost on the reference machine, in seconds of this one."""
    calibration, programs = _shipped()
    slower = _calibration() / calibration if programs else 1.0
    return {name: (slower * a, slower * b) for name, (a, b) in programs.items()}


def runs_within(seconds: float, program: Program) -> int:
    """How many runs of a program take that long on the reference machine, at least 1; the same on every machine."""
    programs = _shipped()[1]
    _, per_run = programs.get(_name(program)) or _alike(program, programs) or (COMPILE, RUN)
    return max(1, int(seconds / max(per_run, 1e-9)))


def _alike(program: Program, costs: Mapping[str, Times]) -> Times | None:
    """From the program of the same trial with the fewest other fields: a run costs in proportion to the sizes in these fields.

    A rough number, and too low where the cost grows faster than a size: minutes or days can be told from it.
    """
    own = dict(program.static)
    found: list[tuple[int, float, Times]] = []
    for name, times in costs.items():
        trial, _, text = name.partition(" ")
        if trial == program.trial.title and (other := _fields(text)) is not None:
            changed = [field for field in own if other.get(field) != own[field]]
            larger = math.prod(_size(own[f]) / _size(other.get(f)) for f in changed if f not in NO_SIZES)
            found.append((len(changed), larger, times))
    if not found:
        return None
    _, larger, (compile_seconds, per_run) = min(found, key=lambda each: (each[0], -each[1] * each[2][1]))
    return compile_seconds, larger * per_run


def _fields(text: str) -> dict[str, Any] | None:
    """A program's static fields from its name; None where a value is no literal."""
    try:
        return dict(ast.literal_eval(text))
    except (ValueError, TypeError, SyntaxError):
        return None


def _size(value: Any) -> float:
    """A whole number as itself, a group by its pairs, several as their sum, names by how many there are; anything else is 1."""
    if isinstance(value, tuple):
        return sum(map(_size, value)) or 1.0
    if isinstance(value, str):
        return max(float(value), 1.0) ** 2 if value.isdecimal() else 1.0
    return float(value) if isinstance(value, int) and value > 1 else 1.0


def _calibration() -> float:
    """Seconds of a fixed piece of Python on one core, the best of many: how machines are compared."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        total = 0
        for i in range(LOOPS):
            total += i * i % 7
        best = min(best, time.perf_counter() - start)
    return best


def _name(program: Program) -> str:
    return f"{program.trial.title} {program.static}"


def _compiled(job: Job) -> str:
    """What a job compiles: its program, under ``vmap`` in the shape of its chunks."""
    shape = "" if job.program.executor == "map" else f" {len(job.chunks[0].cells)}x{len(job.chunks[0].seeds)}"
    return job.program.identity() + shape


def expected(job: Job) -> float:
    """Expected seconds for the chunks of a job that are not stored."""
    runs = sum(c.runs for c in job.chunks if c not in job.done)
    if runs == 0:
        return 0.0
    met = _known().get(_name(job.program))
    if met is not None:
        compile_seconds, per_run = met.compile_seconds, met.run_seconds
        if met.compiled == _compiled(job):
            compile_seconds = TRACING * compile_seconds if met.again is None else met.again
    else:
        costs = {**_reference(), **{n: (m.compile_seconds, m.run_seconds) for n, m in _known().items()}}
        compile_seconds, per_run = _reference().get(_name(job.program)) or _alike(job.program, costs) or (COMPILE, RUN)
    return compile_seconds + per_run * runs


def guessed(job: Job) -> bool:
    """Whether a program that is still to run has not run at its size before, here or on the reference machine."""
    left = any(c not in job.done for c in job.chunks)
    return left and _name(job.program) not in _known() and _name(job.program) not in _reference()


def remember(jobs: list[Job], costs: Mapping[Program, Any]) -> None:
    """Keep what the programs of this call cost."""
    known = dict(_known())
    for job in jobs:
        cost = costs.get(job.program)
        if isinstance(cost, dict) and cost["runs"]:
            name, compiled, seconds = _name(job.program), _compiled(job), cost["compile_seconds"]
            old = known.get(name, Met(0.0, 0.0))
            again = seconds if old.compiled == compiled else None
            # a compilation that the cache answered is no measure of one
            known[name] = Met(max(seconds, old.compile_seconds), cost["run_seconds"] / cost["runs"], compiled, again)
    from jaxdyn.engine.store import atomic_write

    with contextlib.suppress(UsageError, OSError):  # a cache that cannot be written costs nothing but the estimate
        atomic_write(_file(), json.dumps(known))
    _known.cache_clear()


def write_reference(folder: Path, target: Path = REFERENCE) -> int:
    """Write the shipped costs from the shards of an output folder; returns the number of programs.

    Raises:
        UsageError: the folder holds no shards.
    """
    from jaxdyn.engine.chunk import Program
    from jaxdyn.engine.reference import Ref
    from jaxdyn.engine.store import atomic_write, read_shard

    spent: dict[str, list[float]] = {}
    for shard in sorted(folder.glob("shards/*/*.nc")):
        facts = read_shard(shard)[1].facts
        parts = facts["program"]
        static = tuple((name, _hashable(value)) for name, value in parts["static"])
        total = spent.setdefault(_name(Program(Ref(**parts["trial"]), Ref(**parts["setting"]), static)), [0.0, 0.0, 0.0])
        for i, key in enumerate(("compile_seconds", "run_seconds", "runs")):
            total[i] += facts[key]
    if not spent:
        raise UsageError(f"{folder} holds no shards; give the folder that was --out of `jaxdyn verify`")
    programs = {name: [round(a, 3), float(f"{b / runs:.3g}")] for name, (a, b, runs) in sorted(spent.items())}
    atomic_write(target, json.dumps({"calibration_seconds": round(_calibration(), 5), "programs": programs}, indent=1) + "\n")
    return len(programs)


def _hashable(value: Any) -> Any:
    """JSON's lists as the tuples that they were."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


if __name__ == "__main__":
    print(f"{write_reference(Path(sys.argv[1]))} programs written to {REFERENCE.name}")
