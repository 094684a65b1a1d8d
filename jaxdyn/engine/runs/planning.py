"""Planning: requested runs become programs and chunks that suit the devices, equal runs once."""

from __future__ import annotations

import concurrent.futures as cf
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from jaxdyn.engine.base.devices import Devices, budget, check_options, devices
from jaxdyn.engine.base.reference import refuse_namesakes
from jaxdyn.engine.claims.resource import why_unknown
from jaxdyn.engine.programs.chunk import Chunk, Job, Program, in_one_room
from jaxdyn.engine.programs.direct import facts_of
from jaxdyn.engine.programs.fingerprint import CALLS_BACK
from jaxdyn.engine.programs.program import MAP_RUNS, check_device
from jaxdyn.engine.runs.blocks import Request, Runs
from jaxdyn.engine.runs.costs import reference_times, runs_within
from jaxdyn.engine.storage.seeds import Seeds, places

__all__ = ["each_once", "can_be_stored", "lists", "why_not_stored", "plan", "split_items", "facts_here"]

Items = TypeVar("Items", tuple[Any, ...], Seeds)
LONGEST = 60.0  # most expected seconds of a chunk under ``map``, which a killed sweep can lose


def plan(
    requests: Iterable[Request],
    *,
    store: Path | None,
    executor: str = "auto",
    quick: bool = False,
    memory: int | None = None,
    chunk: int | Callable[[list[Job]], int | None] | None = None,
    pool: cf.Executor | None = None,
    lengths: Mapping[Program, int] | None = None,
    by_seed: bool = False,
    facts: Mapping[Program, Mapping[str, Any]] | None = None,
) -> list[Job]:
    """Group all requested runs into programs and chunks; equal runs of different requests are planned once.

    Args:
        requests: the runs.
        store: folder of the shards; None keeps nothing.
        executor: as in :func:`sweep`.
        quick: compile faster, for runs that are short.
        memory: bytes that one chunk may need; None: :func:`jaxdyn.engine.base.devices.budget`.
        chunk: the largest number of runs in a chunk, or what finds it from the jobs without a limit; None: no limit.
        pool: processes that trace programs; None: this process does.
        lengths: the lengths of lists for which programs are compiled already.
        by_seed: cut rectangles along seeds rather than along cells.
        facts: of all their programs, from :func:`jaxdyn.engine.programs.direct.facts_of`; None: they are made here.

    Raises:
        UsageError: two different trials, or two different settings, have one name.
    """
    check_options()
    check_device()
    requests = list(requests)
    refuse_namesakes(thing for request in requests for thing in (request.trial, request.grid.setting))
    where = devices()
    room = budget(where) if memory is None else memory
    # cells by program and seeds
    wanted: dict[tuple[Program, Seeds], dict[tuple[Any, ...], None]] = {}
    shared: dict[Program, set[str]] = {}  # names of every grid that asks for runs of a program
    for request in requests:
        planned = {key: dataclasses.replace(one, executor=executor) for key, one in request.programs.items()}
        for found, swept in request.cells:
            program = planned[Runs.program_key(found)]
            wanted.setdefault((program, request.seeds), {})[swept] = None
            shared[program] = shared.get(program, set(request.grid.names)) & set(request.grid.names)
    # traced once, cut as often as is asked for
    known = facts_of([program for program, _ in wanted], pool) if facts is None else facts
    facts_by_program = {program: facts_here(known[program], where) for program, _ in wanted}

    def cut(most: int | None) -> list[Job]:
        return _cut(wanted, shared, facts_by_program, where, store, quick, room, most, lengths or {}, by_seed)

    if not callable(chunk):
        return cut(chunk)
    jobs = cut(None)
    return jobs if (most := chunk(jobs)) is None else cut(most)


def _cut(
    wanted: Mapping[tuple[Program, Seeds], dict[tuple[Any, ...], None]],
    shared: Mapping[Program, set[str]],
    facts_by_program: Mapping[Program, Mapping[str, Any]],
    where: Devices,
    store: Path | None,
    quick: bool,
    room: int,
    chunk: int | None,
    lengths: Mapping[Program, int],
    by_seed: bool,
) -> list[Job]:
    """The runs that are wanted as jobs, whose chunks fit the memory."""
    # rectangles
    jobs: dict[Program, Job] = {}
    at_once: dict[Program, int] = {}
    for (program, seeds), cells in each_once(wanted).items():
        facts, axes = facts_by_program[program], tuple(sorted(shared[program]))
        program = _executed(program, facts, quick, where)
        mapped, flat = program.executor == "map", program.executor == "flat"
        most = min(MAP_RUNS, runs_within(LONGEST, program)) if mapped else max(1, room // max(1, facts["bytes"]))
        if flat and most > where.count:
            most -= most % where.count  # a list is padded to the same number of runs on every device
        most = at_once[program] = most if chunk is None else min(most, chunk)
        folder, program_id = (str(store), program.identity()) if store is not None and can_be_stored(program) else (None, "")
        whole = Chunk(program, tuple(cells), seeds, folder, program_id, 0 if mapped or flat else facts["group"], axes)
        jobs.setdefault(program, Job(program, [])).chunks += [whole] if flat else _blocks(whole, most, by_seed)
    # lists instead of rectangles, or rectangles of one shape
    for program, job in jobs.items():
        if program.executor == "flat":
            job.chunks = lists(job.chunks, at_once[program], lengths.get(program, 0))
        elif program.executor == "vmap":
            job.chunks = in_one_room(job.chunks, *reference_times(program), at_once[program])
    return list(jobs.values())


def can_be_stored(program: Program) -> bool:
    """Whether a planned program's runs can be stored: not if it calls a user's own code, nor if its trial raised while traced."""
    return not (program.fingerprint.startswith(CALLS_BACK) or not program.fingerprint)


def why_not_stored(jobs: Iterable[Job]) -> str | None:
    """A sentence that names a trial whose runs cannot be stored: it calls Python or ``jax.ffi``, or shares what is not known."""
    programs = [job.program for job in jobs if job.program.fingerprint.startswith(CALLS_BACK)]
    titles = sorted({program.trial.title for program in programs})
    if not titles:
        return None
    if unknown := {program.trial.title: reason for program in programs if (reason := why_unknown(program)) is not None}:
        name = min(unknown)
        return f"{name} shares arrays that are read by code that is not known, {unknown[name]}: its runs are made anew every time"
    more = f" (and {len(titles) - 1} more)" if len(titles) > 1 else ""
    cure = "without pure_callback, io_callback, jax.debug and jax.ffi, and with EQX_ON_ERROR=nan, they are stored"
    what = "calls back into Python, or into compiled code (jax.ffi), which its program does not tell"
    return f"{titles[0]}{more} {what}: its runs are made anew every time; {cure}"


def _executed(program: Program, facts: Mapping[str, Any], quick: bool, where: Devices) -> Program:
    """The program with its fingerprint, its executor, and how hard XLA tries, which is chosen on CPU only."""
    compiler = "full" if not (quick and where.on_cpu) else "quick" if facts["heavy"] else "light"
    executor = facts["executor"] if program.executor == "auto" else program.executor
    return dataclasses.replace(program, executor=executor, compiler=compiler, fingerprint=facts["fingerprint"])


def _blocks(whole: Chunk, most: int, by_seed: bool) -> list[Chunk]:
    """A rectangle cut into smaller ones of at most ``most`` runs, compiled for one shape."""
    seeds = max(1, most // len(whole.cells)) if by_seed else max(1, most)
    seed_parts = split_items(whole.seeds, seeds)
    cell_parts = split_items(whole.cells, max(1, most // len(seed_parts[0])))
    room = len(cell_parts[0]), len(seed_parts[0])
    return [dataclasses.replace(whole, cells=part, seeds=block, room=room) for block in seed_parts for part in cell_parts]


def lists(rectangles: Sequence[Chunk], most: int, length: int = 0) -> list[Chunk]:
    """The runs of rectangles as equally long lists of at most ``most`` runs; the last may be shorter, compiled for the same length.

    If lists of ``length`` are compiled already, that is the length, unless less than half of the slots would be used.
    """
    pairs = list(dict.fromkeys(pair for rectangle in rectangles for pair in rectangle.pairs))
    size = -(-len(pairs) // -(-len(pairs) // most))
    if 0 < length <= most and -(-len(pairs) // length) * length <= 2 * len(pairs):
        size = length
    one = dataclasses.replace(rectangles[0], cells=(), seeds=(), room=(size, size), zipped=True)
    return [one.part(pairs[i : i + size]) for i in range(0, len(pairs), size)]


def each_once(wanted: Mapping[tuple[Program, Seeds], Mapping[Any, None]]) -> dict[tuple[Program, Seeds], list[Any]]:
    """The requested runs, without cells that are also requested with a superset of their seeds."""
    groups: dict[Program, list[Seeds]] = {}
    for program, seeds in wanted:
        groups.setdefault(program, []).append(seeds)
    left = {}
    for (program, seeds), cells in wanted.items():
        larger = [wanted[program, more] for more in groups[program] if len(more) > len(seeds) and _within(seeds, more)]
        if remaining := [cell for cell in cells if not any(cell in other for other in larger)]:
            left[program, seeds] = remaining
    return left


def _within(seeds: Seeds, more: Seeds) -> bool:
    """Whether ``more`` contains all of the seeds."""
    own, _ = places(seeds, more)
    return (own.stop - own.start if isinstance(own, slice) else len(own)) == len(seeds)


def split_items(items: Items, most: int) -> list[Items]:
    """Consecutive parts of equal size, none larger than ``most``; the last may be smaller."""
    count = -(-len(items) // most)
    size = -(-len(items) // count)
    return [items[i : i + size] for i in range(0, len(items), size)]


def facts_here(facts: Mapping[str, Any], where: Devices) -> dict[str, Any]:
    """The facts of a program (:func:`jaxdyn.engine.programs.direct.facts_of`), adapted to these devices.

    Off CPU all runs are made at once, as a list: rectangles of several shapes would be compiled one by one, or padded.
    """
    return dict(facts) if where.on_cpu else {**facts, "executor": "flat", "group": 0}
