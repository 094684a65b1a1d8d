"""Verify claims: plan all their runs together, run them, judge them."""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import dataclasses
import math
import time
import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import xarray as xr

from jaxdyn.engine.base.failure import Failure, let_through, shown_path, written
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.catalogue import library, registry
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.grid import Grid
from jaxdyn.engine.claims.resource import absence
from jaxdyn.engine.judging.decision import Decision, Terms, error_decision
from jaxdyn.engine.judging.verdict import by_cells, decide
from jaxdyn.engine.programs.chunk import Job, Program
from jaxdyn.engine.programs.direct import facts_of, tracing_times, untraced
from jaxdyn.engine.runs import costs as timings
from jaxdyn.engine.runs.blocks import Request, Runs, distinct_runs
from jaxdyn.engine.runs.sweep import check_cluster, chosen_seeds, execute, load_stored, wait_for_first
from jaxdyn.engine.storage import store as storage
from jaxdyn.engine.verification.last_verdicts import with_looks
from jaxdyn.engine.verification.result import Cost, Result
from jaxdyn.engine.verification.selection import Candidate, affordable
from jaxdyn.engine.verification.task import Plan, Task, planned
from jaxdyn.errors import UsageError
from jaxdyn.wording import plural

__all__ = [
    "Elsewhere",
    "conclude",
    "distinct_runs",
    "make_plan",
    "make_tasks",
    "quickest_theory",
    "run_plan",
    "verify",
    "verify_many",
]

THEORIES = f"{library.HOME}."

Concluding: TypeAlias = "Callable[[Task, xr.Dataset, dict[str, xr.Dataset]], Decision | Elsewhere]"


class Elsewhere(NamedTuple):
    """A decision that another process reaches, or ``here`` this one, if the other has another version of the claim."""

    future: cf.Future[Decision | None]
    here: Callable[[], Decision]


def verify(
    claim: str | Claim,
    *,
    scale: str = "quick",
    seeds: Any = None,
    by: str | Sequence[str] = (),
    out: str | Path | None = None,
    cluster: cf.Executor | None = None,
    load: Sequence[str | Path] = (),
    **fields: Any,
) -> Result:
    """Verify one claim in this process.

    ``jd.verify("theory.claim", seeds=64, lr=[0.1, 1.0, 10.0])``

    Args:
        claim: an id, or a ``Claim`` of your own.
        scale: ``quick`` or ``paper``.
        seeds: their number, or a list of them; default: the claim's own.
        by: swept fields whose cells are also judged separately (``.by``).
        out: folder for the runs' shards; None keeps nothing.
        cluster: any ``concurrent.futures.Executor`` for the chunks; see :func:`jaxdyn.sweep`.
        load: files with claims of your own.
        fields: overrides of the setting; a list sweeps the field.

    Returns:
        ``.verdict``, ``.checks``, ``.controls``, ``.resolution``, ``.data`` (an ``xarray.Dataset``), ``.plot()``, ``.to_json()``.

    Raises:
        UsageError: a claim or field is unknown, or a value is not allowed.
    """
    registry.check_claim(claim)
    if isinstance(claim, str):
        matches = registry.select([claim], load)
        if len(matches) != 1:
            raise UsageError(
                f"{claim!r} matches {plural(len(matches), 'claim')}; jd.verify takes one, jd.verify_many takes patterns"
            )
        claim = matches[0]
    options = {"scale": scale, "seeds": seeds, "by": by, "out": out, "cluster": cluster, "load": load}
    return verify_many([claim], **options, **fields)[0]


def verify_many(
    claims: str | Claim | Sequence[str | Claim],
    *,
    scale: str = "quick",
    seeds: Any = None,
    by: str | Sequence[str] = (),
    out: str | Path | None = None,
    cluster: cf.Executor | None = None,
    load: Sequence[str | Path] = (),
    **fields: Any,
) -> list[Result]:
    """Verify several claims in this process, planned together, so that they share programs and runs.

    ``jd.verify_many("theory.*")``, ``jd.verify_many(["theory.claim", my_claim], seeds=4)``

    Args:
        claims: patterns as on the command line, claims of your own, or a list of either.
        scale: ``quick`` or ``paper``.
        seeds: their number, or a list of them; default: each claim's own.
        by: swept fields whose cells are also judged separately (``.by``).
        out: folder for the runs' shards; None keeps nothing.
        cluster: any ``concurrent.futures.Executor`` for the chunks; see :func:`jaxdyn.sweep`.
        load: files with claims of your own.
        fields: overrides of the setting; every selected claim must have them.

    Returns:
        One :class:`Result` per claim, in the order given.

    Raises:
        UsageError: a pattern matches nothing, a field is unknown, or a value is not allowed.
    """
    check_cluster(cluster)
    chosen: dict[str, Claim] = {}
    for item in [claims] if isinstance(claims, str | Claim) or not isinstance(claims, Iterable) else claims:
        registry.check_claim(item)
        matches = [item] if isinstance(item, Claim) else registry.select([item], load)
        for claim in matches:
            if chosen.setdefault(claim.id, claim) is not claim:
                raise UsageError(f"two claims are called {claim.id}")
    if not chosen:
        raise UsageError("claims=[] is not allowed: at least one pattern or claim is needed")
    folder = contextlib.nullcontext(None) if out is None else storage.open_folder(out, "verify")
    with folder as store:
        whole_plan = make_plan(list(chosen.values()), scale=scale, seeds=seeds, overrides=fields, by=by, load=load, store=store)
        if (sentence := whole_plan.warning()) is not None:
            warnings.warn(sentence, stacklevel=2)
        title = next(iter(chosen)) if len(chosen) == 1 else plural(len(chosen), "claim")
        with Progress(title) as progress:
            return list(map(with_looks, run_plan(whole_plan, cluster, progress)))


def make_plan(
    claims: Sequence[Claim],
    *,
    scale: str = "quick",
    seeds: Any = None,
    fresh: int | None = None,
    overrides: Mapping[str, Any] | None = None,
    by: str | Sequence[str] = (),
    load: Sequence[str | Path] = (),
    store: Path | None = None,
) -> Plan:
    """Plan all runs of all claims together, so that they share programs, chunks and shards.

    Args:
        claims: the claims.
        scale: ``quick`` or ``paper``.
        seeds: their number, or a list of them; None: each claim's own.
        fresh: first seed, to repeat each claim on its own number of seeds not used before.
        overrides: fields of the settings.
        by: swept fields whose cells are also judged separately.
        load: files with a user's own claims.
        store: folder of the shards.

    Raises:
        UsageError: a scale or field is unknown, or a value or list of seeds is not allowed.
    """
    tasks = make_tasks(claims, scale=scale, seeds=seeds, fresh=fresh, overrides=overrides, by=by, load=load)
    return plan_tasks(tasks, scale=scale, store=store)


def task_costs(tasks: Sequence[Task]) -> dict[Hashable, float]:
    """Expected seconds of each program of some tasks, with all their runs, without tracing anything."""
    requests = [request for task in tasks for request in task.requests]
    programs = {key: program for request in requests for key, program in request.programs.items()}
    times = {key: timings.program_times(program) for key, program in programs.items()}
    return {key: times[key][0] + times[key][1] * count for key, count in distinct_runs(requests).items()}


def tracing_costs(tasks: Sequence[Task]) -> dict[Hashable, float]:
    """Expected seconds of tracing each program of some tasks that must be traced before runs can be planned."""
    programs = {key: program for task in tasks for request in task.requests for key, program in request.programs.items()}
    unknown, times = untraced(programs.values()), tracing_times()
    return {key: timings.tracing_seconds(program, times) for key, program in programs.items() if program in unknown}


def tasks_within(
    tasks: Sequence[Task],
    seconds: float,
    each: Sequence[float],
    free: Collection[Hashable] = (),
    longest: float = math.inf,
    at_least_one: bool = True,
) -> list[Task]:
    """The tasks that fit into a time, in the order of :func:`jaxdyn.engine.verification.selection.affordable`.

    Args:
        tasks: all tasks.
        seconds: the time, summed over processes.
        each: seconds of each task besides its programs, which are traced, compiled and run.
        free: keys of programs whose runs are stored, or planned already.
        longest: seconds that one program may take.
        at_least_one: whether one task is chosen even if none fits.
    """
    cost, tracing = task_costs(tasks), tracing_costs(tasks)
    cost = {key: seconds_ + tracing.get(key, 0.0) for key, seconds_ in cost.items()}
    cost |= dict.fromkeys(free, 0.0)
    shown = {theory: library.theory(theory).shown for theory in {task.claim.theory for task in tasks}}
    first = library.flagship()
    candidates = [
        Candidate(t.claim.theory, frozenset(_keys(t.requests)), t.claim.id in shown[t.claim.theory], t.claim.id == first)
        for t in tasks
    ]
    return [tasks[i] for i in affordable(candidates, cost, each, seconds, longest, at_least_one)]


def cheapest(tasks: Sequence[Task]) -> tuple[Task, float]:
    """The task with the fewest expected seconds, tracing included, and these seconds."""
    cost, tracing = task_costs(tasks), tracing_costs(tasks)
    seconds = [sum(cost[key] + tracing.get(key, 0.0) for key in _keys(task.requests)) for task in tasks]
    best = min(range(len(tasks)), key=seconds.__getitem__)
    return tasks[best], seconds[best]


def quickest_theory() -> str | None:
    """The theory with the cheapest program on the reference machine; None without a file of costs."""
    costs = {name: sum(times) for name, times in timings.shipped_costs()[1].items() if name.startswith(THEORIES)}
    return min(costs, key=costs.__getitem__).removeprefix(THEORIES).partition(".")[0] if costs else None


def plan_tasks(
    tasks: list[Task],
    *,
    scale: str,
    store: Path | None,
    pool: cf.Executor | None = None,
    tell: Callable[[int, int], None] | None = None,
    until: float = math.inf,
) -> Plan:
    """The plan of some tasks at one scale; without those whose programs were not all traced in time.

    Arguments as for :func:`make_plan` and :func:`jaxdyn.engine.programs.direct.facts_of`.
    """
    facts = facts_of([p for task in tasks for r in task.requests for p in r.programs.values()], pool, tell, until)
    ready = [task for task in tasks if all(p in facts for request in task.requests for p in request.programs.values())]
    jobs = planned([request for task in ready for request in task.requests], store, scale, facts=facts)
    return Plan(ready, jobs, load_stored(jobs), store, scale)


def program_count(tasks: Sequence[Task]) -> int:
    """Number of programs that some tasks ask for."""
    return len(program_keys(tasks))


def program_keys(tasks: Sequence[Task]) -> set[Hashable]:
    """The keys of the programs that some tasks ask for."""
    return {key for task in tasks for key in _keys(task.requests)}


def make_tasks(
    claims: Sequence[Claim],
    *,
    scale: str = "quick",
    seeds: Any = None,
    fresh: int | None = None,
    overrides: Mapping[str, Any] | None = None,
    by: str | Sequence[str] = (),
    load: Sequence[str | Path] = (),
) -> list[Task]:
    """A task for each claim, with the runs that it asks for; arguments and errors as for :func:`make_plan`."""
    if scale not in ("quick", "paper"):
        raise UsageError(f"scale={scale!r} is not allowed: it is quick or paper")
    overrides = overrides or {}
    registry.check_load(load)
    by = _names(by)
    lacking = [c.id for c in claims if any(f not in c.grid(scale).setting.hints for f in overrides)]
    if lacking and len(lacking) < len(claims):
        raise UsageError(f"not every selected claim has the fields {', '.join(overrides)}; these lack one: {', '.join(lacking)}")
    if fresh is not None and seeds is not None:
        raise UsageError("fresh and seeds are not allowed together: fresh takes each claim's own number of seeds")
    tasks = [_task(claim, scale, _own_seeds(claim, scale, seeds, fresh), overrides, by, load) for claim in claims]
    tasks = [dataclasses.replace(task, grows=seeds is None and not by) for task in tasks]
    return tasks if fresh is None else [dataclasses.replace(task, fresh=True) for task in tasks]


def run_plan(
    plan_: Plan,
    pool: cf.Executor | None,
    progress: Progress | None = None,
    conclude: Concluding | None = None,
    concluded: Callable[[Result], None] | None = None,
    at_once: int | None = None,
    until: float = math.inf,
) -> list[Result]:
    """Run a plan and judge each claim as soon as its runs are done.

    Args:
        plan_: from :func:`make_plan`.
        pool: executor for the chunks; None runs in this process.
        progress: a bar, updated after each chunk.
        conclude: judges one claim; may pass the work to another process.
        concluded: called with every result as it is reached; an exception that it raises ends the call.
        at_once: upper limit on chunks in the pool at a time; see :func:`jaxdyn.engine.runs.sweep.execute`.
        until: the time (:func:`time.monotonic`) after which nothing more is begun.

    An undecided claim is judged again with twice as many seeds, up to its ``max_seeds``; without time for these it is not reached.

    Returns:
        One :class:`Result` per claim that was reached in time, in the plan's order.
    """
    tasks, runs = list(plan_.tasks), plan_.stored
    jobs: dict[Program, Job] = {}
    costs: dict[Program, Any] = {}
    results: dict[int, Result] = {}
    growing: dict[int, Task] = {}

    def settle(i: int, decision: Decision, data: xr.Dataset | None, controls: dict[str, xr.Dataset]) -> None:
        task = tasks[i]
        if decision.undecided and (grown := task.grown()) is not None:
            if time.monotonic() < until:  # else the next call decides it
                tasks[i], growing[i] = grown, task
            return
        keys = _keys(task.requests)
        own = tuple(_cost(program, costs) for program in jobs if Runs.program_key(program) in keys)
        results[i] = Result.of(decision, task, data=data, control_data=controls, costs=own)
        if concluded is not None:
            concluded(results[i])

    # skip tasks that lack something
    todo, next_jobs = list(range(len(tasks))), plan_.jobs
    for i in (i for i in todo if tasks[i].missing is not None):
        settle(i, Decision("skipped", message=tasks[i].missing), None, {})
    # rounds: run and judge, then add seeds to undecided claims
    todo = [i for i in todo if i not in results]
    try:
        while todo:
            growing.clear()
            jobs |= {job.program: job for job in next_jobs if job.program not in jobs}
            how = pool, progress, conclude or _conclude_here, settle, at_once, until
            _run_round(next_jobs, {i: tasks[i] for i in todo}, runs, costs, *how)
            todo = sorted(growing)
            next_jobs = plan_.more([(growing[i], tasks[i]) for i in todo])
            load_stored(next_jobs, runs)
    finally:
        timings.remember(list(jobs.values()), costs)
    return [results[i] for i in sorted(results)]


def _keys(requests: Sequence[Request]) -> set[tuple[Any, ...]]:
    """The keys of the programs of some requests."""
    return set().union(*(request.programs for request in requests))


def _run_round(
    jobs: list[Job],
    tasks: Mapping[int, Task],
    runs: Runs,
    costs: dict[Program, Any],
    pool: cf.Executor | None,
    progress: Progress | None,
    conclude: Concluding,
    settle: Callable[[int, Decision, xr.Dataset | None, dict[str, xr.Dataset]], None],
    at_once: int | None,
    until: float,
) -> None:
    """Run some jobs, judge each task as soon as its runs are done, and add to ``costs``."""
    waiting = {i: _keys(task.requests) for i, task in tasks.items()}
    judging: dict[cf.Future[Decision | None], tuple[int, Elsewhere, Any, Any]] = {}

    def finished(job: Job, runs: Runs, cost: Any) -> None:
        before = costs.get(job.program)
        costs[job.program] = _sum(before, cost) if isinstance(before, dict) and isinstance(cost, dict) else cost
        arrived(Runs.program_key(job.program), cost)

    def arrived(key: tuple[Any, ...], cost: Any) -> None:
        for i in [i for i, left in waiting.items() if key in left]:
            waiting[i].discard(key)
            if isinstance(cost, Failure):
                del waiting[i]
                settle(i, error_decision(cost), None, {})
            elif not waiting[i]:
                del waiting[i]
                decision, data, controls = _outcome(tasks[i], runs, conclude)
                if isinstance(decision, Elsewhere):
                    judging[decision.future] = i, decision, data, controls
                else:
                    settle(i, decision, data, controls)

    def meanwhile() -> None:
        for future in [f for f in judging if f.done()]:
            i, decision, data, controls = judging.pop(future)
            settle(i, _judged_elsewhere(decision), data, controls)

    # tasks whose programs ran in earlier rounds, then this round's jobs, then judgements in other processes
    planned = {Runs.program_key(job.program) for job in jobs}
    for key in set().union(*waiting.values()) - planned:
        arrived(key, None)
    execute(jobs, runs, pool, progress, finished, meanwhile, at_once, until=until)
    while judging:
        wait_for_first(judging)
        meanwhile()


def _sum(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value + other[name] for name, value in one.items()}


def conclude(
    claim: Claim, data: xr.Dataset, control_data: dict[str, xr.Dataset], by: Sequence[str] = (), terms: Terms | None = None
) -> Decision:
    """Judge one claim on its data, and each cell of the fields of ``by``; see :func:`jaxdyn.engine.judging.verdict.decide`."""
    cells = by_cells(claim, data, list(by)) if by else None
    return dataclasses.replace(decide(claim, data, control_data, terms or Terms()), by=cells)


def _conclude_here(task: Task, data: xr.Dataset, control_data: dict[str, xr.Dataset]) -> Decision:
    return conclude(task.claim, data, control_data, task.by, task.terms)


def _names(by: Any) -> list[str]:
    """The fields of ``by`` as a list of different names."""
    names = [by] if isinstance(by, str) else list(by) if isinstance(by, list | tuple) else None
    if names is None or not all(isinstance(name, str) and name.strip() for name in names):
        raise UsageError(f"by={by!r:.60} is not allowed: it is the name of a field, or a list of names")
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise UsageError(f"--by {','.join(names)} is not allowed: {twice[0]} is given twice")
    return names


def _own_seeds(claim: Claim, scale: str, seeds: Any, fresh: int | None) -> Any:
    if seeds is not None:
        return seeds
    count = claim.seed_count(scale)
    return count if fresh is None else range(fresh, fresh + count)


def _task(
    claim: Claim, scale: str, seeds: Any, overrides: Mapping[str, Any], by: Sequence[str], load: Sequence[str | Path]
) -> Task:
    grid = claim.grid(scale).replace(**overrides)
    chosen = chosen_seeds(seeds)
    for name in by:
        if name != "seed" and name not in grid.axes:
            axes = ", ".join([*grid.axes, "seed"])
            known = name in grid.setting.hints
            cure = f"; add --set {name}=v1,v2,…" if known else f"; {grid.setting.__name__} has no field of that name"
            raise UsageError(f"--by {name}: {claim.id} does not sweep {name}: --by takes what is swept, {axes}{cure}")
    controls = {}
    for name, control in claim.controls.items():
        if not callable(control.breach):
            own = chosen if "seed" in by else control.seeds(chosen)
            controls[name] = Request(claim.trial, _breached(claim, grid, name, control.breach), own)
    main = Request(claim.trial, grid, chosen)
    missing = absence(claim.trial, [main.grid, *(request.grid for request in controls.values())])
    return Task(claim, scale, main, controls, overrides, tuple(by), tuple(map(str, load)), missing=missing)


def _breached(claim: Claim, grid: Grid, name: str, breach: Mapping[str, Any]) -> Grid:
    try:
        return grid.replace(**breach)
    except UsageError as error:
        place = written((claim.judge, claim.trial), claim.id, "control", name)
        where = f" ({shown_path(place.file)}:{place.line})" if place else ""
        raise UsageError(f"{claim.id}, control {name!r}: {error}{where}") from None


def _cost(program: Program, costs: Mapping[Program, Any]) -> Cost:
    cost = costs.get(program)
    return Cost(program, **cost) if isinstance(cost, dict) else Cost(program)


def _judged_elsewhere(decision: Elsewhere) -> Decision:
    """The decision of another process; if it cannot be pickled (for a value in a check, say), an error of the claim."""
    try:
        return decision.future.result() or decision.here()
    except cf.BrokenExecutor:
        raise
    except BaseException as error:
        let_through(error)
        return error_decision(error)


def _outcome(task: Task, runs: Runs, conclude: Concluding) -> tuple[Decision | Elsewhere, xr.Dataset | None, dict[str, xr.Dataset]]:
    """The decision (or where it is reached) and the data; observables that do not fit into a Dataset are an error of the claim."""
    try:
        data, controls = runs.dataset(task.main), {n: runs.dataset(r) for n, r in task.controls.items()}
    except BaseException as error:
        let_through(error)
        return error_decision(error, task.claim.trial), None, {}
    about = {"claim": task.claim.id, "statement": task.claim.statement, "source": task.claim.source, "scale": task.scale}
    data.attrs |= about
    for name, ds in controls.items():
        ds.attrs |= about | {"control": name}
    return conclude(task, data, controls), data, controls
