"""Verify claims: plan all their runs together, run them, judge them."""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import xarray as xr

from jaxdyn.engine import registry, timings
from jaxdyn.engine import store as storage
from jaxdyn.engine.claim import Claim
from jaxdyn.engine.progress import Progress
from jaxdyn.engine.runs import Request, Runs
from jaxdyn.engine.setting import Grid
from jaxdyn.engine.sweep import Job, execute, load_stored, plan, seed_tuple
from jaxdyn.engine.task import Conclusion, Plan, Task, Verified
from jaxdyn.engine.verdict import by_cells, decide, error_decision
from jaxdyn.errors import UsageError

__all__ = ["conclude", "make_plan", "run_plan", "verify"]

Concluding: TypeAlias = "Callable[[Task, xr.Dataset, dict[str, xr.Dataset]], Conclusion | cf.Future[Conclusion]]"
QUICK_OPTIMIZATION = 1  # XLA's backend level at quick scale: compiles 20-65% faster, runs equal


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
) -> Verified:
    """Verify one claim in this process.

    ``jd.verify("joma.exp_invariant", seeds=64, ratio=[0.1, 1.0, 10.0])``

    Args:
        claim: an id, or a ``Claim`` of your own.
        scale: ``quick`` or ``paper``.
        seeds: how many, or which; default: the claim's own.
        by: swept fields: judge each of their cells separately (``.by``).
        out: folder for the runs' shards; None keeps nothing.
        cluster: any ``concurrent.futures.Executor`` for the chunks.
        load: files with claims of your own.
        fields: overrides of the setting; a list sweeps the field.

    Returns:
        ``.verdict``, ``.checks``, ``.controls``, ``.resolution``, ``.data`` (an ``xarray.Dataset``).

    Raises:
        UsageError: unknown claim, field or value.
    """
    if isinstance(claim, str):
        found = registry.select([claim], load)
        if len(found) != 1:
            raise UsageError(f"{claim!r} matches {len(found)} claims; jd.verify takes one (the command line takes patterns)")
        claim = found[0]
    folder = contextlib.nullcontext(None) if out is None else storage.open_folder(Path(out), "verify")
    with folder as store:
        made = make_plan([claim], scale=scale, seeds=seeds, overrides=fields, by=by, load=load, store=store)
        with Progress(claim.id) as progress:
            return run_plan(made, cluster, progress)[0]


def make_plan(
    claims: Sequence[Claim],
    *,
    scale: str = "quick",
    seeds: Any = None,
    overrides: Mapping[str, Any] | None = None,
    by: str | Sequence[str] = (),
    load: Sequence[str | Path] = (),
    store: Path | None = None,
) -> Plan:
    """Plan all runs of all claims together, so that they share programs, chunks and shards.

    Raises:
        UsageError: an unknown scale or field, a value that is not allowed, no seeds.
    """
    if scale not in ("quick", "paper"):
        raise UsageError(f"scale={scale!r} is not allowed: it is quick or paper")
    overrides = overrides or {}
    by = [by] if isinstance(by, str) else by
    lacking = [c.id for c in claims if any(f not in c.grid(scale).setting.hints for f in overrides)]
    if lacking and len(lacking) < len(claims):
        raise UsageError(f"not every selected claim has the fields {', '.join(overrides)}; these lack one: {', '.join(lacking)}")
    tasks = [_task(claim, scale, seeds, overrides, by, load) for claim in claims]
    optimization = QUICK_OPTIMIZATION if scale == "quick" else None
    jobs = plan([r for task in tasks for r in task.requests], store=store, optimization=optimization)
    stored = load_stored(jobs)
    return Plan(tasks, sorted(jobs, key=timings.expected, reverse=True), stored)


def run_plan(
    plan_: Plan,
    pool: cf.Executor | None,
    progress: Progress | None = None,
    conclude: Concluding | None = None,
    concluded: Callable[[Verified], None] | None = None,
) -> list[Verified]:
    """Run a plan and judge each claim as soon as its runs are there.

    Args:
        plan_: from :func:`make_plan`.
        pool: executor for the chunks; None runs in this process.
        progress: progress bar, updated after each chunk.
        conclude: judges one claim; may hand the work to other processes and return a future.
        concluded: called with every outcome as it is reached.

    Returns:
        One :class:`Verified` a claim, in the plan's order.
    """
    keys = [{Runs.key(r, cell) for r in task.requests for cell in r.grid.cells()} for task in plan_.tasks]
    waiting = {i: set(k) for i, k in enumerate(keys)}
    outcomes: dict[int, tuple[Any, Any, Any]] = {}

    def finished(job: Job, runs: Runs) -> None:
        key = Runs.program_key(job.program)
        for i in [i for i, left in waiting.items() if key in left]:
            waiting[i].discard(key)
            task = plan_.tasks[i]
            if not waiting[i] and runs.has_all(task.requests):
                outcomes[i] = _outcome(task, runs, conclude or _conclude_here)

    costs = execute(plan_.jobs, plan_.stored, pool, progress, finished)
    timings.remember(plan_.jobs, costs)
    by_key: dict[Any, list[Any]] = {}
    for program, cost in costs.items():
        by_key.setdefault(Runs.program_key(program), []).append(cost)
    results = []
    for i, task in enumerate(plan_.tasks):
        mine = [c for key in keys[i] for c in by_key.get(key, [])]
        results.append(_verified(task, len(keys[i]), mine, outcomes.get(i)))
        if concluded is not None:
            concluded(results[-1])
    return results


def conclude(
    claim: Claim, data: xr.Dataset, control_data: dict[str, xr.Dataset], by: Sequence[str] = (), *, narrowed: bool = False
) -> Conclusion:
    """Judge one claim on its data; see :func:`jaxdyn.engine.verdict.decide`."""
    cells = by_cells(claim, data, list(by)) if by else None
    return Conclusion(decide(claim, data, control_data, narrowed=narrowed), cells)


def _conclude_here(task: Task, data: xr.Dataset, control_data: dict[str, xr.Dataset]) -> Conclusion:
    return conclude(task.claim, data, control_data, task.by, narrowed=task.narrowed)


def _task(
    claim: Claim, scale: str, seeds: Any, overrides: Mapping[str, Any], by: Sequence[str], load: Sequence[str | Path]
) -> Task:
    grid = claim.grid(scale).replace(**overrides)
    chosen = seed_tuple(claim.seed_count(scale) if seeds is None else seeds)
    for name in by:
        if name != "seed" and name not in grid.axes:
            axes = ", ".join([*grid.axes, "seed"])
            raise UsageError(f"--by {name}: {claim.id} does not sweep {name}; it sweeps {axes} (add --set {name}=v1,v2,…)")
    controls = {}
    for name, control in claim.controls.items():
        if not callable(control.breach):
            controls[name] = Request(claim.trial, _breached(claim, grid, name, control.breach), chosen)
    return Task(claim, scale, Request(claim.trial, grid, chosen), controls, overrides, tuple(by), tuple(map(str, load)))


def _breached(claim: Claim, grid: Grid, name: str, breach: Mapping[str, Any]) -> Grid:
    try:
        return grid.replace(**breach)
    except UsageError as error:
        raise UsageError(f"{claim.id}, control {name!r}: {error}") from None


def _outcome(task: Task, runs: Runs, conclude: Concluding) -> tuple[Any, xr.Dataset | None, dict[str, xr.Dataset]]:
    """The conclusion (or its future) and the data; observables that fit no Dataset are the claim's own error."""
    try:
        data, controls = runs.dataset(task.main), {n: runs.dataset(r) for n, r in task.controls.items()}
    except Exception as error:
        return Conclusion(error_decision(error)), None, {}
    return conclude(task, data, controls), data, controls


def _verified(task: Task, programs: int, costs: list[Any], outcome: tuple[Any, Any, Any] | None) -> Verified:
    spent = [c for c in costs if isinstance(c, dict)]
    compile_seconds, run_seconds = (sum(c[k] for c in spent) for k in ("compile_seconds", "run_seconds"))
    if outcome is None:
        error = next(c for c in costs if isinstance(c, BaseException))
        return Verified(task.claim, task, Conclusion(error_decision(error)), None, {}, programs, compile_seconds, run_seconds)
    conclusion, data, controls = outcome
    if isinstance(conclusion, cf.Future):
        conclusion = conclusion.result()
    return Verified(task.claim, task, conclusion, data, controls, programs, compile_seconds, run_seconds)
