"""Which programs and chunks the runs need that are asked for: equal runs once, by what suits the devices."""

from __future__ import annotations

import concurrent.futures as cf
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from jaxdyn.engine.chunk import Chunk, Job, Program, in_one_room
from jaxdyn.engine.devices import Devices, budget, devices
from jaxdyn.engine.probes import facts_of
from jaxdyn.engine.program import MAP_RUNS, check_device
from jaxdyn.engine.reference import ref_to
from jaxdyn.engine.runs import Request, Runs
from jaxdyn.engine.sources import renew
from jaxdyn.engine.timings import reference_times, runs_within

__all__ = ["each_once", "lists", "plan", "split_items", "suited"]

T = TypeVar("T")
LONGEST = 60.0  # expected seconds of a chunk under ``map``: the most that a killed sweep can lose


def plan(
    requests: Iterable[Request],
    *,
    store: Path | None,
    executor: str = "auto",
    quick: bool = False,
    memory: int | None = None,
    chunk: int | None = None,
    pool: cf.Executor | None = None,
    lengths: Mapping[Program, int] | None = None,
) -> list[Job]:
    """Group all requested runs into programs and chunks; equal runs of different requests are planned once.

    Args:
        requests: the runs.
        store: folder of the shards; None keeps nothing.
        executor: as in :func:`sweep`.
        quick: compile faster where the run itself is short.
        memory: bytes that one chunk may need; None: :func:`jaxdyn.engine.devices.budget`.
        chunk: the largest number of runs in a chunk; None: no limit.
        pool: processes for the tracing that planning needs; None: it is done here.
        lengths: of lists of runs for which programs are compiled already.
    """
    check_device()
    where = devices()
    room = budget(where) if memory is None else memory
    wanted: dict[tuple[Program, tuple[int, ...]], dict[tuple[Any, ...], None]] = {}
    shared: dict[Program, set[str]] = {}  # axes of every grid that asks for runs of a program
    for request in requests:
        trial, setting = ref_to(request.trial), ref_to(request.grid.setting)
        values = renew(trial, setting)
        planned = {key: dataclasses.replace(one, executor=executor, values=values) for key, one in request.programs.items()}
        for found, swept in request.cells:
            program = planned[Runs.program_key(found)]
            wanted.setdefault((program, request.seeds), {})[swept] = None
            shared[program] = shared.get(program, set(request.grid.axes)) & set(request.grid.axes)
    facts_by_program = facts_of([program for program, _ in wanted], pool)
    jobs: dict[Program, Job] = {}
    at_once: dict[Program, int] = {}
    for (program, seeds), cells in each_once(wanted).items():
        facts, axes = suited(facts_by_program[program], where), tuple(sorted(shared[program]))
        program = _executed(program, facts, quick, where)
        mapped, flat = program.executor == "map", program.executor == "flat"
        most = min(MAP_RUNS, runs_within(LONGEST, program)) if mapped else max(1, room // max(1, facts["bytes"]))
        if flat and most > where.count:
            most -= most % where.count  # a list is filled up to as many runs for one device as for another
        most = at_once[program] = most if chunk is None else min(most, chunk)
        folder, program_id = (None, "") if store is None else (str(store), program.identity())
        whole = Chunk(program, tuple(cells), seeds, folder, program_id, 0 if mapped or flat else facts["group"], axes)
        jobs.setdefault(program, Job(program, [])).chunks += [whole] if flat else _blocks(whole, most)
    for program, job in jobs.items():
        if program.executor == "flat":
            job.chunks = lists(job.chunks, at_once[program], (lengths or {}).get(program, 0))
        elif program.executor == "vmap":
            job.chunks = in_one_room(job.chunks, *reference_times(program), at_once[program])
    return list(jobs.values())


def _executed(program: Program, facts: Mapping[str, Any], quick: bool, where: Devices) -> Program:
    """The program with its executor and how hard XLA tries, which is a matter of processors alone."""
    compiler = "full" if not (quick and where.on_cpu) else "quick" if facts["heavy"] else "light"
    executor = facts["executor"] if program.executor == "auto" else program.executor
    return dataclasses.replace(program, executor=executor, compiler=compiler)


def _blocks(whole: Chunk, most: int) -> list[Chunk]:
    """A rectangle in smaller ones of one shape, with at most so many runs."""
    seed_parts = split_items(whole.seeds, max(1, most))
    cell_parts = split_items(whole.cells, max(1, most // len(seed_parts[0])))
    return [dataclasses.replace(whole, cells=part, seeds=block) for block in seed_parts for part in cell_parts]


def lists(rectangles: Sequence[Chunk], most: int, length: int = 0) -> list[Chunk]:
    """The runs of rectangles in equally long lists of at most so many; the last may be shorter, and is compiled as they are.

    Where lists of some length are compiled already these are taken, unless they would be filled by less than half.
    """
    pairs = list(dict.fromkeys(pair for rectangle in rectangles for pair in rectangle.pairs))
    size = -(-len(pairs) // -(-len(pairs) // most))
    if 0 < length <= most and -(-len(pairs) // length) * length <= 2 * len(pairs):
        size = length
    one = dataclasses.replace(rectangles[0], cells=(), seeds=(), room=(size, size), zipped=True)
    return [one.part(pairs[i : i + size]) for i in range(0, len(pairs), size)]


def each_once(wanted: dict[tuple[Program, tuple[int, ...]], dict[Any, None]]) -> dict[tuple[Program, tuple[int, ...]], list[Any]]:
    """The requested runs without cells that are requested with a larger set of seeds as well."""
    groups: dict[Program, list[tuple[int, ...]]] = {}
    for program, seeds in wanted:
        groups.setdefault(program, []).append(seeds)
    left = {}
    for (program, seeds), cells in wanted.items():
        own = set(seeds)
        larger = [wanted[program, more] for more in groups[program] if len(more) > len(own) and own <= set(more)]
        if remaining := [cell for cell in cells if not any(cell in other for other in larger)]:
            left[program, seeds] = remaining
    return left


def split_items(items: Sequence[T], most: int) -> list[tuple[T, ...]]:
    """Consecutive parts of equal size, none larger than ``most``; the last is filled up by repeating its last item."""
    count = -(-len(items) // most)
    size = -(-len(items) // count)
    parts = [tuple(items[i : i + size]) for i in range(0, len(items), size)]
    parts[-1] += (parts[-1][-1],) * (size - len(parts[-1]))
    return parts


def suited(facts: Mapping[str, Any], where: Devices) -> dict[str, Any]:
    """The facts of a program (:mod:`jaxdyn.engine.probes`), for these devices.

    Off CPU all runs are made at once, and as a list: rectangles of several shapes would be compiled one by one, or filled up.
    """
    return dict(facts) if where.on_cpu else {**facts, "executor": "flat", "group": 0}
