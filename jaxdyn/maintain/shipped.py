"""Files that ship with the package: the catalogue, and facts and costs of the theories' programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.programs.chunk import Program, program_name
from jaxdyn.engine.programs.direct import SHIPPED, direct_key, traced_facts
from jaxdyn.engine.runs.costs import REFERENCE, calibrate, read_costs
from jaxdyn.engine.storage.shard import read_shard
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.engine.verification.verify import make_tasks
from jaxdyn.errors import UsageError
from jaxdyn.maintain.recheck import stored_program

__all__ = ["theory_programs", "write_costs", "write_programs", "write_shipped"]


def write_shipped(folder: Path) -> tuple[int, int]:
    """Write ``catalogue.json`` and ``programs.json`` of all theories to a folder; returns the numbers of claims and programs."""
    claims = registry.write_shipped(folder / registry.SHIPPED.name)
    return claims, write_programs(theory_programs(), folder / SHIPPED.name)


def theory_programs(patterns: Sequence[str] = ()) -> list[Program]:
    """The distinct programs of claims and their controls at quick scale; of all claims without patterns."""
    requests = [request for task in make_tasks(registry.select(patterns)) for request in task.requests]
    programs = [program for request in requests for program, _ in request.cells]
    return list(dict.fromkeys(programs))


def write_programs(programs: Iterable[Program], target: Path = SHIPPED) -> int:
    """Write the facts that tracing reveals about these programs; returns their number."""
    lines = sorted(f'"{direct_key(program)}": {json.dumps(traced_facts(program))}' for program in programs)
    atomic_write(target, "{\n" + ",\n".join(lines) + "\n}\n")
    return len(lines)


def write_costs(folder: Path, target: Path = REFERENCE) -> int:
    """Add the costs of programs in seconds of the reference machine, from the shards of a verification that compiled them itself.

    Programs that the verification did not run keep their costs. Without a file, this machine becomes the reference.

    Returns:
        The number of programs that the verification ran.

    Raises:
        UsageError: the folder holds no shards.
    """
    # seconds and runs of each program
    totals: dict[str, list[float]] = {}
    for shard in sorted(folder.glob("shards/*/*.nc")):
        facts = read_shard(shard)[1].facts
        name = program_name(stored_program(facts))
        total = totals.setdefault(name, [0.0, 0.0, 0.0])
        for i, key in enumerate(("compile_seconds", "run_seconds", "runs")):
            total[i] += facts[key]
    if not totals:
        raise UsageError(f"{folder} holds no shards; give the folder that was --out of `jaxdyn verify`")
    # scaled to the reference machine, next to the costs of other programs
    (reference, before), here = read_costs(target), calibrate()
    slower = here / reference if reference else 1.0
    known = set(map(program_name, theory_programs())) if before else set()
    programs = {name: list(times) for name, times in before.items() if name in known}
    programs |= {name: [round(a / slower, 3), float(f"{b / runs / slower:.3g}")] for name, (a, b, runs) in totals.items()}
    whole = {"calibration_seconds": reference or round(here, 5), "programs": dict(sorted(programs.items()))}
    atomic_write(target, json.dumps(whole, indent=1) + "\n")
    return len(totals)
