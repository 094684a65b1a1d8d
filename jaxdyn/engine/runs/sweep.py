"""Sweeps: run a trial over a grid of settings x seeds and return one labelled Dataset.

Runs are grouped by static fields into programs and cut into fixed-shape chunks, which go to any
``concurrent.futures.Executor``. Finished chunks are stored as shards, so that a killed sweep resumes where it stopped.
"""

from __future__ import annotations

import collections
import concurrent.futures as cf
import contextlib
import dataclasses
import math
import operator
import os
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import xarray as xr

from jaxdyn.engine.base.devices import devices
from jaxdyn.engine.base.failure import Failure, let_through
from jaxdyn.engine.base.reference import ref_to, refuse_hidden_names, resolve
from jaxdyn.engine.base.watch import Watch
from jaxdyn.engine.claims.grid import Grid
from jaxdyn.engine.programs.chunk import Chunk, Job, Program
from jaxdyn.engine.programs.program import prepare, run_chunk
from jaxdyn.engine.runs.blocks import Request, Runs
from jaxdyn.engine.runs.costs import expected, guessed
from jaxdyn.engine.runs.planning import plan, why_not_stored
from jaxdyn.engine.runs.preparing import Preparing, interruptible
from jaxdyn.engine.storage import shard, store
from jaxdyn.engine.storage.arrays import Arrays
from jaxdyn.engine.storage.seeds import Seeds, seeds_of
from jaxdyn.errors import StoreError, UsageError, missing, one_line, whole

if TYPE_CHECKING:
    from jaxdyn.engine.base.progress import Progress

__all__ = ["MOST_SEEDS", "check_cluster", "chosen_seeds", "execute", "load_stored", "sweep", "sweep_all", "wait_for_first"]

T = TypeVar("T")
MOST_SEEDS = 10**7
CORES = os.cpu_count() or 1  # with one core, compiling the next program while one runs gains nothing
EXECUTORS = "auto", "vmap", "map", "flat"
PATIENCE = 0.5  # seconds between calls of ``meanwhile`` while chunks run
POLL = (0.05, 5.0)  # seconds between polls of a future of another library: at first, and at most


def sweep(
    trial: Callable[..., Any],
    grid: Grid,
    seeds: int | Sequence[int] = 1,
    *,
    out: str | Path | None = None,
    executor: Literal["auto", "vmap", "map", "flat"] = "auto",
    cluster: cf.Executor | None = None,
    progress: Progress | bool | None = None,
    memory: int | None = None,
    chunk: int = MOST_SEEDS,
    lazy: bool = False,
) -> xr.Dataset:
    """Run ``trial`` over a grid and seeds: one compiled program for each combination of static fields.

    Args:
        trial: ``(setting, key) -> Observables``, at the top level of a module.
        grid: from :func:`jaxdyn.grid`.
        seeds: their number (0, 1, …), or a list of them.
        out: folder for the shards; an interrupted sweep resumes from there, with the same bits.
        executor: ``vmap``, first over seeds and then over cells, ``map`` or ``flat``, one ``vmap`` over a list of runs; ``auto``
            chooses by what the trial does, and off CPU ``flat``.
        cluster: any ``concurrent.futures.Executor`` that does not fork, e.g. of Dask, mpi4py or submitit; ``out`` must then be a
            shared folder. Plans are made for this process's devices: if the workers have others, call this within
            ``elsewhere(of_workers(cluster))``, both of :mod:`jaxdyn.engine.base.devices`.
        progress: of :mod:`jaxdyn.engine.base.progress`; by default a bar after two seconds, on a terminal or in a notebook, and
            otherwise a line a minute, on standard error; False: none.
        memory: bytes that one chunk may need; None: 2 GiB on CPU, half of the memory of all its devices elsewhere.
        chunk: the largest number of runs in a chunk, which a killed sweep can lose; with 1, every grid that contains a stored
            run uses it.
        lazy: whether the Dataset holds Dask arrays, cut along ``seed``, which read the shards in ``out`` when their values are
            asked for: for results that are larger than the memory. Needs the library dask.

    Returns:
        Dataset with dims (grid axes…, ``seed``, the observables' axes…); ``status`` says which runs failed.

    Raises:
        UsageError: before anything is run: workers could not import the trial, or an argument is not allowed.
    """
    return sweep_all(
        trial, [grid], seeds, out=out, executor=executor, cluster=cluster, progress=progress, memory=memory, chunk=chunk, lazy=lazy
    )[0]


def sweep_all(
    trial: Callable[..., Any],
    grids: Sequence[Grid],
    seeds: int | Sequence[int] = 1,
    *,
    out: str | Path | None = None,
    executor: Literal["auto", "vmap", "map", "flat"] = "auto",
    cluster: cf.Executor | None = None,
    progress: Progress | bool | None = None,
    memory: int | None = None,
    chunk: int = MOST_SEEDS,
    lazy: bool = False,
) -> list[xr.Dataset]:
    """The same over several grids, whose runs are planned together: one Dataset each. Arguments and errors as for :func:`sweep`."""
    for grid in grids:
        _refuse_kinds(trial, grid, executor, progress)
    check_cluster(cluster)
    memory, chunk = None if memory is None else whole("memory", memory, least=1), whole("chunk", chunk, least=1)
    _check_lazy(lazy, out)
    requests = [Request(trial, grid, chosen_seeds(seeds)) for grid in grids]

    def run(folder: Path | None, bar: Progress | None) -> list[xr.Dataset]:
        jobs = plan(requests, store=folder, executor=executor, memory=memory, chunk=chunk, by_seed=lazy)
        if folder is not None and (sentence := why_not_stored(jobs)) is not None:
            if lazy:
                raise UsageError(f"lazy=True is not allowed: {sentence}")
            warnings.warn(sentence, stacklevel=4)
        runs = load_stored(jobs, Runs(lazy))
        costs = execute(jobs, runs, cluster, bar)
        for cost in costs.values():
            if isinstance(cost, Failure):
                raise cost.exception()
        return [runs.dataset(request) for request in requests]

    with contextlib.ExitStack() as stack:
        folder = None if out is None else stack.enter_context(opened(out, trial))
        return run(folder, stack.enter_context(_shown(progress)))


def _shown(progress: Progress | bool | None) -> contextlib.AbstractContextManager[Progress | None]:
    """The progress that is shown: the one given, none, or by default a bar if the work takes long."""
    if progress is None or progress is True:
        from jaxdyn.engine.base.progress import Delayed

        return Delayed("sweep")
    return contextlib.nullcontext(progress or None)


def opened(out: str | Path, trial: Callable[..., Any]) -> contextlib.AbstractContextManager[Path]:
    """The folder of sweeps of a trial, held by this process; within it, sweeps of that trial may be stored there."""
    return store.open_folder(out, f"sweep of {ref_to(trial).title}")


def _refuse_kinds(trial: Any, grid: Any, executor: Any, progress: Any) -> None:
    """Refuse arguments of :func:`sweep` that have the wrong type."""
    if isinstance(trial, type) or not hasattr(trial, "__qualname__"):
        raise UsageError(f"trial={one_line(trial)} is not allowed: trial is a function at the top level of a module")
    ref_to(trial)
    if not isinstance(grid, Grid):
        raise UsageError(f"grid={one_line(grid)} is not allowed: grid is what jd.grid returns")
    if not (isinstance(executor, str) and executor in EXECUTORS):
        raise UsageError(
            f"executor={one_line(executor)} is not allowed: executor is {', '.join(EXECUTORS[:-1])} or {EXECUTORS[-1]}"
        )
    if not (progress is None or isinstance(progress, bool)) and (
        isinstance(progress, type) or not _has(progress, "start", "advance")
    ):
        raise UsageError(
            f"progress={one_line(progress)} is not allowed: progress is True, False, None, or a bar with start and advance"
        )


def _check_lazy(lazy: Any, out: Any) -> None:
    """Refuse a lazy result without an output folder or without Dask."""
    if not isinstance(lazy, bool):
        raise UsageError(f"lazy={one_line(lazy)} is not allowed: lazy is True or False")
    if lazy and out is None:
        raise UsageError("lazy=True is not allowed: a lazy result reads shards, so out is the path of a folder")
    if lazy:
        try:
            import dask.array  # noqa: F401
        except ImportError:
            raise missing("lazy=True", "dask", "dask") from None


def check_cluster(cluster: Any) -> None:
    """Refuse an executor to which chunks cannot be submitted, or whose workers would hang.

    Raises:
        UsageError: it is neither None nor an object with a method ``submit``, or it forks.
    """
    if cluster is not None and (isinstance(cluster, type) or not _has(cluster, "submit")):
        raise UsageError(f"cluster={one_line(cluster)} is not allowed: cluster is None or a concurrent.futures.Executor")
    context = getattr(cluster, "_mp_context", None) if isinstance(cluster, cf.ProcessPoolExecutor) else None
    if context is not None and context.get_start_method() == "fork":
        cure = 'mp_context=multiprocessing.get_context("spawn")'
        raise UsageError(
            f"cluster={one_line(cluster)} is not allowed: it forks a process with JAX, which hangs; make it with {cure}"
        )


def _has(thing: Any, *methods: str) -> bool:
    return all(callable(getattr(thing, method, None)) for method in methods)


def chosen_seeds(seeds: Any) -> Seeds:
    """Seeds from their number (0, 1, …) or from a sequence.

    Raises:
        UsageError: there are none, too many, or one is not a whole number from 0 to 2**32 - 1.
    """
    allowed = "a number of seeds (1 to 10 million), or a list of different whole numbers from 0 to 4294967295"
    try:
        if isinstance(seeds, str | bytes | bytearray | memoryview | Mapping):
            raise TypeError
        several = isinstance(seeds, Sequence | Set) or getattr(seeds, "ndim", 0) == 1
        count = len(seeds) if several else _whole(seeds)
        if not 1 <= count <= MOST_SEEDS:
            raise ValueError
        if isinstance(seeds, range):
            chosen = seeds_of(seeds)
        else:
            chosen = seeds_of([_whole(seed) for seed in seeds]) if several else range(count)
        if min(chosen[0], chosen[-1]) < 0 or max(chosen[0], chosen[-1]) >= 2**32:
            raise ValueError
        if not isinstance(chosen, range) and (min(chosen) < 0 or max(chosen) >= 2**32 or len(set(chosen)) < count):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"seeds={one_line(seeds)} is not allowed: it is {allowed}") from None
    return chosen


def _whole(value: Any) -> int:
    """A whole number as Python's int; ``TypeError`` for anything else, including bool."""
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def load_stored(jobs: list[Job], runs: Runs | None = None) -> Runs:
    """Add the stored runs to ``runs``, whichever sweep wrote them, and mark the chunks that need not be run."""
    runs = Runs() if runs is None else runs
    for job in jobs:
        if job.chunks[0].store is None:
            continue
        own = {chunk.identity() for chunk in job.chunks}
        paths = shard.stored_shards(job.chunks[0].store, job.chunks[0].program_id)
        for path in sorted(paths, key=lambda p: p.name.split(".")[0] not in own):  # own shards first: the same bits as before
            cells, result = (shard.open_shard if runs.lazy else shard.read_shard)(path)
            with contextlib.suppress(OverflowError):  # a clock beyond 2262, which no file's time can hold
                shard.mark_used(path)
            runs.add(job.program, cells, result.facts["seeds"], result)
        job.chunks = _apart(job.chunks, runs)
        job.done = [chunk for chunk in job.chunks if runs.has(chunk)]
    return runs


def _apart(chunks: list[Chunk], runs: Runs) -> list[Chunk]:
    """The chunks, with partly stored lists regrouped into lists of stored runs and lists of missing ones."""
    kept, there, lacking = list[Chunk](), list[Any](), list[Any]()
    for chunk in chunks:
        left = set(runs.lacking(chunk)) if chunk.zipped else set()
        if 0 < len(left) < chunk.runs:
            for pair in chunk.pairs:
                (lacking if pair in left else there).append(pair)
        else:
            kept.append(chunk)
    size = chunks[0].shape[1]
    if all(runs.has(chunk) for chunk in kept):  # no list of this length must be compiled: take one that fits the missing runs
        size = -(-len(lacking) // -(-len(lacking) // size)) if lacking else size
    parts = [pairs[i : i + size] for pairs in (there, lacking) for i in range(0, len(pairs), size)]
    return kept + [dataclasses.replace(chunks[0].part(part), room=(size, size)) for part in parts]


def execute(
    jobs: list[Job],
    runs: Runs,
    pool: cf.Executor | None,
    progress: Progress | None = None,
    finished: Callable[[Job, Runs, Any], None] | None = None,
    meanwhile: Callable[[], None] | None = None,
    at_once: int | None = None,
    compiled: Collection[Program] = (),
    until: float = math.inf,
) -> dict[Program, Any]:
    """Run the chunks that are not stored yet, in the order of the jobs.

    A program's first chunk runs before its others, so that no two workers compile the same program.

    Args:
        jobs: from :func:`plan`.
        runs: from :func:`load_stored`; the new runs are added to it.
        pool: any ``concurrent.futures.Executor``; None runs in this process.
        progress: a bar, updated after each chunk.
        finished: called when all chunks of a job are done (or failed), with the job, the runs so far, and the job's cost.
        meanwhile: called after each chunk, and regularly while none finishes.
        at_once: upper limit on chunks in the pool at a time, so that other work is not queued behind all of them; None: no limit.
        compiled: programs in the compilation cache, whose chunks need not wait for the first.
        until: the time (:func:`time.monotonic`) by which chunks are to end: after the first one, none is begun that is expected to
            take longer. Jobs with chunks left stay unfinished.

    Returns:
        The cost of each program (``compile_seconds``, ``run_seconds``, ``cpu_seconds``, ``runs``), or the failure that ended it.

    Raises:
        UsageError: other processes would find another trial, or another setting, than this process has.
    """
    if pool is not None and not isinstance(pool, cf.ThreadPoolExecutor):
        refuse_hidden_names(ref for job in jobs if job.left for ref in (job.program.trial, job.program.setting))
    costs = dict[Program, Any]()
    left = {job.program: {id(chunk): chunk for chunk in job.left} for job in jobs}
    each = {} if progress is None else _begun(progress, jobs, left)

    def settle(job: Job) -> None:
        if not left[job.program] and finished is not None:
            finished(job, runs, costs.setdefault(job.program, _no_cost()))

    for job in jobs:  # those with nothing to run
        settle(job)
    todo = [item for job in jobs for item in _starts(job, [*left[job.program].values()], job.program in compiled)]
    # outcomes, as chunks finish
    for job, chunk, outcome in _watched(_outcomes, progress, todo, pool, at_once, meanwhile, until):
        if isinstance(costs.get(job.program), Failure):
            continue  # ignore the remaining chunks of a failed program
        if isinstance(outcome, Failure):
            costs[job.program], left[job.program] = outcome, {}
        else:
            facts = _take_in(runs, costs, job, chunk, outcome)
            del left[job.program][id(chunk)]
            if progress is not None:
                progress.advance(chunk.runs, facts | {"expected_seconds": each[job.program]})
        settle(job)
        if meanwhile is not None:
            meanwhile()
    return costs


def _begun(progress: Progress, jobs: Sequence[Job], left: Mapping[Program, Collection[Any]]) -> dict[Program, float]:
    """Start a bar with the number of runs and expected seconds; returns the expected seconds per chunk of each program."""
    seconds = {job.program: expected(job) for job in jobs}
    progress.start(sum(j.runs for j in jobs), sum(c.runs for j in jobs for c in j.done))
    if _has(progress, "expect"):
        progress.expect(sum(seconds.values()))
    return {program: seconds[program] / max(1, len(chunks)) for program, chunks in left.items()}


def _watched(outcomes: Callable[..., Iterator[T]], progress: Progress | None, *args: Any) -> Iterator[T]:
    """The outcomes, while a bar with a method ``say`` reports chunks that take long."""
    say = getattr(progress, "say", None)
    if say is None:
        yield from outcomes(*args, lambda jobs: None)
        return
    with Watch(say) as watch:
        yield from outcomes(*args, lambda jobs: watch.on([j.program.trial.title for j in jobs], _longest(jobs)))


def _longest(jobs: Sequence[Job]) -> float | None:
    """Expected seconds of the longest job; None off CPU if one was never timed: the reference costs are of a CPU."""
    return max(map(expected, jobs)) if devices().on_cpu or not any(map(guessed, jobs)) else None


def _take_in(runs: Runs, costs: dict[Program, Any], job: Job, chunk: Chunk, outcome: Arrays | dict[str, Any]) -> dict[str, Any]:
    """Add a finished chunk to the runs, from memory or, as lazy ones must, from its shard, and to the costs; returns its facts."""
    facts = outcome.facts if isinstance(outcome, Arrays) else outcome
    if isinstance(outcome, Arrays) and not (runs.lazy and "shard" in facts):
        runs.add(job.program, chunk.cells, chunk.seeds, outcome)
    else:
        cells, result = (shard.open_shard if runs.lazy else shard.read_shard)(Path(facts["shard"]))
        runs.add(job.program, cells, result.facts["seeds"], result)
    _add_cost(costs, job, chunk, facts)
    return facts


def _no_cost() -> dict[str, Any]:
    return {"compile_seconds": 0.0, "run_seconds": 0.0, "cpu_seconds": 0.0, "runs": 0}


def _add_cost(costs: dict[Program, Any], job: Job, chunk: Chunk, facts: dict[str, Any]) -> None:
    cost = costs.setdefault(job.program, _no_cost())
    cost["compile_seconds"] += facts["compile_seconds"]
    cost["run_seconds"] += facts["run_seconds"]
    cost["cpu_seconds"] += facts["cpu_seconds"]
    cost["runs"] += chunk.runs


def _attempt(chunk: Chunk) -> Arrays | Failure:
    """Run a chunk; an exception is returned as a Failure, since not every exception can be unpickled."""
    try:
        return run_chunk(chunk)
    except StoreError:
        raise
    except BaseException as error:
        let_through(error)
        return Failure.of(error, _trial(chunk))


def _attempt_elsewhere(chunk: Chunk) -> Arrays | dict[str, Any] | Failure:
    """Run a chunk in a worker, which returns only its facts if its arrays are stored."""
    outcome = _attempt(chunk)
    return outcome.facts if isinstance(outcome, Arrays) and "shard" in outcome.facts else outcome


def _credited(outcome: Arrays | Failure, seconds: float) -> Arrays | Failure:
    """The outcome of a chunk, with the seconds of compiling ahead added to its cost."""
    if isinstance(outcome, Arrays):
        outcome.facts["compile_seconds"] += seconds
    return outcome


def _trial(chunk: Chunk) -> Any:
    """The trial of a chunk; None if importing it raises."""
    try:
        return resolve(chunk.program.trial)
    except BaseException as error:
        let_through(error)
        return None


Todo: TypeAlias = "tuple[Job, Chunk, tuple[Chunk, ...]]"  # a chunk to run, and chunks to queue when it is done


def _starts(job: Job, chunks: Sequence[Chunk], compiled: bool) -> list[Todo]:
    """A job's chunks in the queue: all if its program is compiled, else the first, which the others wait for."""
    return [(job, chunk, ()) for chunk in chunks] if compiled else [(job, first, tuple(chunks[1:])) for first in chunks[:1]]


def _outcomes(
    todo: list[Todo],
    pool: cf.Executor | None,
    at_once: int | None,
    meanwhile: Callable[[], None] | None,
    until: float,
    running: Callable[[list[Job]], None],
) -> Iterator[tuple[Job, Chunk, Arrays | dict[str, Any] | Failure]]:
    """``(job, chunk, outcome)`` as chunks finish; after a failure the program's other chunks are dropped.

    ``running`` is called with the running jobs whenever they change.
    """
    queue: collections.deque[Todo] = collections.deque(todo)
    waiting: dict[Any, Todo] = {}
    changed, begun, preparing = True, False, Preparing(prepare)
    while queue or waiting:
        _drop_late(queue, until, begun)
        if not (queue or waiting):
            break
        begun = True
        if pool is None:  # one chunk in this process, compiling the next program meanwhile
            job, chunk, rest = queue.popleft()
            running([job])
            seconds = preparing.taken(chunk)
            if CORES > 1:
                preparing.begin(chunk, (item[1] for item in queue))
            finished = [(job, chunk, rest, _credited(interruptible(_attempt, chunk), seconds))]
        else:  # fill the pool, and wait for the first chunks to finish
            while queue and (at_once is None or len(waiting) < at_once):
                item = queue.popleft()
                waiting[pool.submit(_attempt_elsewhere, item[1])] = item
                _drop_late(queue, until, begun)
            if changed:
                running([job for job, *_ in waiting.values()])
            done = wait_for_first(waiting, None if meanwhile is None else PATIENCE)
            finished = [(*waiting.pop(future), _outcome_of(future)) for future in done]
            changed = bool(finished)
        # hand out outcomes, and queue the chunks that waited for them
        for job, chunk, rest, outcome in finished:
            yield job, chunk, outcome
            if isinstance(outcome, Failure):
                queue = collections.deque(item for item in queue if item[0] is not job)
            else:
                queue.extendleft((job, c, ()) for c in reversed(rest))
        if meanwhile is not None:
            meanwhile()


def _drop_late(queue: collections.deque[Todo], until: float, begun: bool) -> None:
    """Drop chunks from the head of a queue until one is expected to end in time, or is the first that is ``begun`` at all."""
    while queue and until < math.inf:
        job, chunk, _ = queue[0]
        left = until - time.monotonic()
        if left > 0 and (not begun or expected(Job(job.program, [chunk])) <= left):
            return
        queue.popleft()


def _outcome_of(future: Any) -> Any:
    """The outcome of a finished future; an exception becomes a Failure, unless it concerns the output folder or the whole pool."""
    try:
        return future.result()
    except (StoreError, cf.BrokenExecutor):
        raise
    except cf.CancelledError:  # jaxdyn cancels nothing: the executor has lost it
        raise cf.BrokenExecutor("the executor has cancelled a chunk") from None
    except BaseException as error:
        let_through(error)
        return Failure.of(error)


def wait_for_first(futures: Collection[Any], seconds: float | None = None) -> list[Any]:
    """The futures that are done, as soon as there is one; an empty list if none is done within the given seconds.

    Futures that are not ``concurrent.futures.Future`` (submitit's jobs) are polled.
    """
    if all(isinstance(future, cf.Future) for future in futures):
        return list(cf.wait(futures, seconds, cf.FIRST_COMPLETED).done)
    end, pause = time.monotonic() + (math.inf if seconds is None else seconds), POLL[0]
    while not (done := [future for future in futures if future.done()]) and time.monotonic() < end:
        time.sleep(pause)
        pause = min(2 * pause, POLL[1])
    return done
