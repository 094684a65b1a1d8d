"""Sweeps: run a trial over a grid of settings x seeds and return one labelled Dataset.

Runs are grouped by static fields into programs and cut into fixed-shape chunks; chunks go to any
``concurrent.futures.Executor``; finished chunks are shards in a store, so that a killed sweep resumes where it stopped.
"""

from __future__ import annotations

import concurrent.futures as cf
import dataclasses
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import xarray as xr

from jaxdyn.engine import store as storage
from jaxdyn.engine.chunk import Chunk, Program, Result
from jaxdyn.engine.probes import facts_of
from jaxdyn.engine.program import run_chunk
from jaxdyn.engine.reference import ref_to
from jaxdyn.engine.runs import Request, Runs
from jaxdyn.engine.setting import Grid, split
from jaxdyn.errors import StoreError, UsageError

if TYPE_CHECKING:
    from jaxdyn.engine.progress import Progress

__all__ = ["MEMORY", "MOST_SEEDS", "Job", "execute", "load_stored", "plan", "seed_tuple", "sweep"]

T = TypeVar("T")
MEMORY = 2 * 2**30  # bytes of one chunk's working memory: fixed, so that chunk shapes do not depend on the moment
MOST_SEEDS = 10**7
MAP_RUNS = 256  # runs of a chunk under ``map``, where a larger chunk is no faster: what a killed sweep can lose at most


def sweep(
    trial: Callable[..., Any],
    grid: Grid,
    seeds: int | Sequence[int] = 1,
    *,
    out: str | Path | None = None,
    executor: Literal["auto", "vmap", "map"] = "auto",
    cluster: cf.Executor | None = None,
    progress: Progress | None = None,
    memory: int = MEMORY,
    chunk: int = MOST_SEEDS,
) -> xr.Dataset:
    """Run ``trial`` over a grid and seeds: one compiled program for each combination of static fields.

    Args:
        trial: ``(setting, key) -> Observables``, at the top level of a module.
        grid: from :func:`jaxdyn.grid`.
        seeds: how many (0, 1, …), or which.
        out: folder for the shards; an interrupted sweep resumes from there, with the same bits.
        executor: ``vmap`` or ``map`` over the runs of a chunk; ``auto`` chooses by what the trial does.
        cluster: any ``concurrent.futures.Executor``, e.g. of Dask, mpi4py or submitit; ``out`` must then be a shared folder.
        progress: see :mod:`jaxdyn.engine.progress`.
        memory: bytes that one chunk may need.
        chunk: the largest number of runs in a chunk, which is what a killed sweep can lose; with 1 every grid that has a run
            finds it again.

    Returns:
        Dataset with dims (grid axes…, ``seed``, the observables' axes…); ``status`` says which runs failed.

    Raises:
        UsageError: an unusable grid, seed list, or output folder.
    """
    chosen = seed_tuple(seeds)
    if chunk < 1:
        raise UsageError(f"chunk={chunk} is not allowed: a chunk has at least one run")
    if executor not in ("auto", "vmap", "map"):
        raise UsageError(f"executor={executor!r} is not allowed: it is auto, vmap or map")
    request = Request(trial, grid, chosen)

    def run(store: Path | None) -> xr.Dataset:
        jobs = plan([request], store=store, executor=executor, memory=memory, chunk=chunk)
        runs = load_stored(jobs)
        costs = execute(jobs, runs, cluster, progress)
        for cost in costs.values():
            if isinstance(cost, Exception):
                raise cost
        return runs.dataset(request)

    if out is None:
        return run(None)
    with storage.open_folder(Path(out), f"sweep of {ref_to(trial).title}") as folder:
        return run(folder)


@dataclasses.dataclass
class Job:
    """One program and its chunks; ``done`` are the chunks whose runs are stored."""

    program: Program
    chunks: list[Chunk]
    done: list[Chunk] = dataclasses.field(default_factory=list)

    @property
    def runs(self) -> int:
        """Runs in all chunks."""
        return sum(c.runs for c in self.chunks)


def plan(
    requests: Iterable[Request],
    *,
    store: Path | None,
    executor: str = "auto",
    optimization: int | None = None,
    memory: int = MEMORY,
    chunk: int = MOST_SEEDS,
) -> list[Job]:
    """Group all requested runs into programs and chunks; equal runs of different requests are planned once."""
    wanted: dict[tuple[Program, tuple[int, ...]], dict[tuple[Any, ...], None]] = {}
    for request in requests:
        trial, setting = ref_to(request.trial), ref_to(request.grid.setting)
        for cell in request.grid.cells():
            static, swept = split(cell)
            wanted.setdefault((Program(trial, setting, static, executor, optimization), request.seeds), {})[swept] = None
    known = facts_of([program for program, _ in wanted])
    jobs: dict[Program, Job] = {}
    for (program, seeds), cells in wanted.items():
        facts = known[program]
        program = dataclasses.replace(program, executor=facts["executor"] if executor == "auto" else executor)
        most = MAP_RUNS if program.executor == "map" else max(1, memory // max(1, facts["bytes"]))
        most = min(most, chunk)
        seed_parts = _split(seeds, max(1, most))
        cell_parts = _split(list(cells), max(1, most // len(seed_parts[0])))
        job = jobs.setdefault(program, Job(program, []))
        folder, program_id = (None, "") if store is None else (str(store), program.identity())
        job.chunks += [Chunk(program, part, block, folder, program_id) for block in seed_parts for part in cell_parts]
    return list(jobs.values())


def _split(items: Sequence[T], most: int) -> list[tuple[T, ...]]:
    """Consecutive parts of equal size, none larger than ``most``; the last is filled up by repeating its last item."""
    count = -(-len(items) // most)
    size = -(-len(items) // count)
    parts = [tuple(items[i : i + size]) for i in range(0, len(items), size)]
    parts[-1] += (parts[-1][-1],) * (size - len(parts[-1]))
    return parts


def seed_tuple(seeds: Any) -> tuple[int, ...]:
    """Seeds from their number (0, 1, …) or from a sequence.

    Raises:
        UsageError: no seeds, too many, or one that is no whole number from 0 to 2**32 - 1.
    """
    allowed = "a number of seeds (1 to 10 million), or a list of different whole numbers from 0 to 4294967295"
    try:
        if isinstance(seeds, bool):
            raise TypeError
        count = operator.index(seeds) if hasattr(seeds, "__index__") else len(seeds)
        if not 1 <= count <= MOST_SEEDS:
            raise ValueError
        chosen = tuple(range(count)) if hasattr(seeds, "__index__") else tuple(operator.index(s) for s in seeds)
        if min(chosen) < 0 or max(chosen) >= 2**32 or len(set(chosen)) < len(chosen):
            raise ValueError
    except (TypeError, ValueError):
        shown = repr(seeds)
        raise UsageError(f"seeds={shown if len(shown) < 60 else shown[:57] + '...'} is not allowed: it is {allowed}") from None
    return chosen


def load_stored(jobs: list[Job]) -> Runs:
    """The stored runs, whichever sweep wrote them; marks the chunks that need not be run."""
    runs = Runs()
    for job in jobs:
        if job.chunks[0].store is None:
            continue
        own = {chunk.identity() for chunk in job.chunks}
        paths = storage.stored_runs(job.chunks[0].store, job.chunks[0].program_id)
        for path in sorted(paths, key=lambda p: p.name.split(".")[0] not in own):  # own shards first: the same bits as before
            cells, result = storage.read_shard(path)
            runs.add(job.program, cells, result.facts["seeds"], result)
        job.done = [chunk for chunk in job.chunks if runs.has(chunk)]
    return runs


def execute(
    jobs: list[Job],
    runs: Runs,
    pool: cf.Executor | None,
    progress: Progress | None = None,
    finished: Callable[[Job, Runs], None] | None = None,
) -> dict[Program, Any]:
    """Run the chunks that are not stored, in the order given.

    The first chunk of every program goes ahead of its others, so that no two workers compile the same program.

    Args:
        jobs: from :func:`plan`.
        runs: from :func:`load_stored`; the new runs are added to it.
        pool: any ``concurrent.futures.Executor``; None runs in this process.
        progress: progress bar, updated after each chunk.
        finished: called with every job whose chunks are all done (or failed), and the runs so far.

    Returns:
        For each program what it cost (``compile_seconds``, ``run_seconds``, ``runs``) or the exception that it raised.
    """
    costs: dict[Program, Any] = {}
    left = {job.program: [c for c in job.chunks if c not in job.done] for job in jobs}
    if progress is not None:
        progress.start(sum(j.runs for j in jobs), sum(c.runs for j in jobs for c in j.done))
    for job in jobs:
        if not left[job.program] and finished is not None:
            finished(job, runs)
    for job, chunk, outcome in _outcomes([(job, list(left[job.program])) for job in jobs if left[job.program]], pool):
        if isinstance(costs.get(job.program), Exception):
            continue  # a program that failed is over, whatever its other chunks do
        if isinstance(outcome, Exception):
            costs[job.program] = outcome
            left[job.program] = []
        else:
            facts = _take_in(runs, job, chunk, outcome)
            _add_cost(costs, job, chunk, facts)
            left[job.program].remove(chunk)
            if progress is not None:
                progress.advance(chunk.runs, facts)
        if not left[job.program] and finished is not None:
            finished(job, runs)
    return costs


def _outcomes(
    todo: list[tuple[Job, list[Chunk]]], pool: cf.Executor | None
) -> Iterator[tuple[Job, Chunk, Result | dict[str, Any] | Exception]]:
    """``(job, chunk, result or exception)`` as chunks finish; after a failure the program's other chunks are left."""
    if pool is None:
        for job, chunks in todo:
            for chunk in chunks:
                try:
                    yield job, chunk, run_chunk(chunk)
                except StoreError:
                    raise
                except Exception as raised:
                    yield job, chunk, raised
                    break
        return
    waiting: dict[Any, tuple[Job, Chunk, list[Chunk]]]
    waiting = {pool.submit(run_chunk, chunks[0]): (job, chunks[0], chunks[1:]) for job, chunks in todo}
    while waiting:
        finished, _ = cf.wait(waiting, return_when=cf.FIRST_COMPLETED)
        for future in finished:
            job, chunk, rest = waiting.pop(future)
            error = future.exception()
            if isinstance(error, StoreError | cf.BrokenExecutor) or not isinstance(error, Exception | None):
                raise error
            yield job, chunk, future.result() if error is None else error
            if error is None:
                waiting |= {pool.submit(run_chunk, c): (job, c, []) for c in rest}


def _take_in(runs: Runs, job: Job, chunk: Chunk, outcome: Result | dict[str, Any]) -> dict[str, Any]:
    """Add a finished chunk to the runs, from memory or from its shard; returns what it cost."""
    if isinstance(outcome, Result):
        runs.add(job.program, chunk.cells, chunk.seeds, outcome)
        return outcome.facts
    cells, result = storage.read_shard(Path(outcome["shard"]))
    runs.add(job.program, cells, result.facts["seeds"], result)
    return outcome


def _add_cost(costs: dict[Program, Any], job: Job, chunk: Chunk, facts: dict[str, Any]) -> None:
    cost = costs.setdefault(job.program, {"compile_seconds": 0.0, "run_seconds": 0.0, "runs": 0})
    cost["compile_seconds"] += facts["compile_seconds"]
    cost["run_seconds"] += facts["run_seconds"]
    cost["runs"] += chunk.runs
