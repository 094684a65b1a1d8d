"""What programs cost on this machine, remembered in the user's cache folder: for planning and for the announced minutes."""

from __future__ import annotations

import contextlib
import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxdyn.engine.cache import cache_dir
from jaxdyn.errors import UsageError

if TYPE_CHECKING:
    from jaxdyn.engine.chunk import Program
    from jaxdyn.engine.sweep import Job

__all__ = ["expected", "remember"]

COMPILE, RUN = 4.0, 0.05  # seconds for a program, and for a run, that this machine has not met


def _file() -> Path:
    return cache_dir() / "timings.json"


@functools.cache
def _known() -> dict[str, tuple[float, float]]:
    try:
        known = json.loads(_file().read_text())
        return {name: (float(a), float(b)) for name, (a, b) in known.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _name(program: Program) -> str:
    return f"{program.trial} {program.static}"


def expected(job: Job) -> float:
    """Expected seconds for the chunks of a job that are not stored."""
    runs = sum(c.runs for c in job.chunks if c not in job.done)
    if runs == 0:
        return 0.0
    compile_seconds, per_run = _known().get(_name(job.program), (COMPILE, RUN))
    return compile_seconds + per_run * runs


def remember(jobs: list[Job], costs: dict[Program, Any]) -> None:
    """Keep what the programs of this call cost."""
    known = dict(_known())
    for job in jobs:
        cost = costs.get(job.program)
        if isinstance(cost, dict) and cost["runs"]:
            old = known.get(_name(job.program), (0.0, 0.0))  # a compilation that the cache answered is no measure of one
            known[_name(job.program)] = (max(cost["compile_seconds"], old[0]), cost["run_seconds"] / cost["runs"])
    from jaxdyn.engine.store import atomic_write

    with contextlib.suppress(UsageError, OSError):  # a cache that cannot be written costs nothing but the estimate
        atomic_write(_file(), json.dumps(known))
    _known.cache_clear()
