"""Verify claims: plan all their runs together, run them, judge them."""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import dataclasses
import html
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from jaxdyn import __version__
from jaxdyn.engine import registry, timings
from jaxdyn.engine import store as storage
from jaxdyn.engine.chunk import Program, versions
from jaxdyn.engine.claim import Claim
from jaxdyn.engine.failure import Failure
from jaxdyn.engine.judge import Check, bound_text
from jaxdyn.engine.progress import Progress
from jaxdyn.engine.setting import Grid
from jaxdyn.engine.sweep import Job, Request, Runs, execute, load_stored, plan, seed_tuple, wait_for_first
from jaxdyn.engine.verdict import ControlOutcome, Decision, by_cells, decide, error_decision
from jaxdyn.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Conclusion", "Cost", "Plan", "Task", "Verified", "conclude", "make_plan", "run_plan", "verify", "verify_many"]

QUICK_OPTIMIZATION = 1  # XLA's backend level at quick scale: compiles 20-65% faster, runs equal


@dataclasses.dataclass(frozen=True)
class Task:
    """One claim and the runs it asks for."""

    claim: Claim
    scale: str
    main: Request
    controls: dict[str, Request]
    overrides: Mapping[str, Any]
    by: tuple[str, ...] = ()
    load: tuple[str, ...] = ()

    @property
    def requests(self) -> list[Request]:
        """All runs: the claim's own, then its controls'."""
        return [self.main, *self.controls.values()]

    @property
    def narrowed(self) -> bool:
        """Whether the caller may have taken away what the judge needs: overridden fields, or fewer seeds than the claim's own."""
        return bool(self.overrides) or len(self.main.seeds) < self.claim.seed_count(self.scale)

    @property
    def command(self) -> str:
        """The command that repeats just this claim."""
        words = ["jaxdyn verify", self.claim.id]
        if self.scale != "quick":
            words.append(f"--scale {self.scale}")
        seeds = self.main.seeds
        contiguous = seeds == tuple(range(seeds[0], seeds[-1] + 1))  # other choices can only be made from Python
        if contiguous and seeds != tuple(range(self.claim.seed_count(self.scale))):
            words.append(f"--seeds {len(seeds)}" if seeds[0] == 0 else f"--seeds {seeds[0]}:{seeds[-1] + 1}")
        for name, value in self.overrides.items():
            text = ",".join(map(_text, value)) if isinstance(value, list | range) else _text(value)
            words.append(f"--set {shlex.quote(f'{name}={text}')}")
        if self.by:
            words.append(f"--by {','.join(self.by)}")
        return " ".join([*words, *(f"--load {shlex.quote(path)}" for path in self.load)])


def _text(value: Any) -> str:
    return ":".join(map(str, value)) if isinstance(value, tuple) else str(value)


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a call of verify will do."""

    tasks: list[Task]
    jobs: list[Job]
    stored: Runs

    @property
    def runs(self) -> int:
        """All runs, stored or not."""
        return sum(job.runs for job in self.jobs)

    @property
    def done(self) -> int:
        """Runs whose results are there already."""
        return sum(c.runs for job in self.jobs for c in job.done)

    def seconds(self) -> float:
        """Expected seconds of work; see :mod:`jaxdyn.engine.timings`."""
        return sum(self.job_seconds())

    def job_seconds(self) -> list[float]:
        """Expected seconds of each job."""
        return [timings.expected(job) for job in self.jobs]


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """What follows from a claim's data: the decision, the map over the fields of ``--by``, and its figure (HTML) if drawn."""

    decision: Decision
    by: list[dict[str, Any]] | None = None
    figure: str | None = None


@dataclasses.dataclass(frozen=True)
class Cost:
    """What one program of a claim cost in this call; zero where all its runs were stored or where it failed."""

    program: Program
    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    runs: int = 0


@dataclasses.dataclass(frozen=True)
class Verified:
    """A claim's outcome: the conclusion, the labelled data, and what it cost."""

    claim: Claim
    task: Task
    conclusion: Conclusion
    data: xr.Dataset | None = None
    control_data: dict[str, xr.Dataset] = dataclasses.field(default_factory=dict)
    costs: tuple[Cost, ...] = ()

    @property
    def verdict(self) -> str:
        """One of upheld, refuted, toothless, inconclusive, measured, error."""
        return self.conclusion.decision.verdict

    @property
    def checks(self) -> list[Check]:
        """The judge's checks on the main runs."""
        return self.conclusion.decision.checks

    @property
    def controls(self) -> list[ControlOutcome]:
        """The outcome of every negative control."""
        return self.conclusion.decision.controls

    @property
    def resolution(self) -> dict[str, dict[str, Any]]:
        """The smallest distortions that are rejected."""
        return self.conclusion.decision.resolution

    @property
    def by(self) -> list[dict[str, Any]] | None:
        """The verdict in each cell of the fields of ``by``."""
        return self.conclusion.by

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the expected one."""
        return self.verdict == self.claim.expected

    @property
    def programs(self) -> int:
        """How many programs the claim needs."""
        return len(self.costs)

    @property
    def compile_seconds(self) -> float:
        """Seconds of compilation of its programs; one that serves several claims counts in each of them."""
        return sum(c.compile_seconds for c in self.costs)

    @property
    def run_seconds(self) -> float:
        """Seconds of running its programs; one that serves several claims counts in each of them."""
        return sum(c.run_seconds for c in self.costs)

    def to_json(self) -> dict[str, Any]:
        """The claim's entry of ``jaxdyn verify --json``: JSON types only, null for numbers that are not finite."""
        from jaxdyn.engine.payload import entry

        return entry(self)

    def plot(self) -> Figure:
        """The claim's figure: its own plot, or measurement against prediction.

        Raises:
            UsageError: there are no data, since the trial raised.
        """
        if self.data is None:
            raise UsageError(f"{self.claim.id} has no data to plot: {self.conclusion.decision.message}")
        from jaxdyn import plotting

        return plotting.draw(self.claim.plot, self.data)

    def __repr__(self) -> str:
        lines = [f"{self.claim.id}: {self.verdict} (expected {self.claim.expected})"]
        lines += [f"  {'ok  ' if c.passed else 'FAIL'} {c}" for c in self.checks]
        lines += [f"  control {c.name}: {'rejected' if c.rejected else f'NOT rejected{_why(c)}'}" for c in self.controls]
        message = self.conclusion.decision.message
        return "\n".join([*lines, *([f"  {message}"] if message else [])])

    def _repr_html_(self) -> str:
        """How a notebook shows it: verdict, statement, and a table of checks and controls."""
        rows = [(c.name, f"{c.value:.4g}", bound_text(c.bound), "passed" if c.passed else "failed") for c in self.checks]
        rows += [(f"control: {c.name}", "", "", "rejected" if c.rejected else "not rejected") for c in self.controls]
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        head = "".join(f"<th>{word}</th>" for word in ("check", "value", "bound", "outcome"))
        message = self.conclusion.decision.message
        note = f"<p>{html.escape(message)}</p>" if message else ""
        title = f"<b>{html.escape(self.claim.id)}</b>: {self.verdict} (expected {self.claim.expected})"
        return f"<div><p>{title}</p><p>{html.escape(self.claim.statement)}</p>{note}<table><tr>{head}</tr>{body}</table></div>"


def _why(control: ControlOutcome) -> str:
    """Why a control was not rejected: its reason, or the values with which its checks pass."""
    return f": {control.reason or 'also passes with ' + '; '.join(map(str, control.checks))}"


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


def conclude(
    claim: Claim, data: xr.Dataset, control_data: dict[str, xr.Dataset], by: Sequence[str] = (), *, narrowed: bool = False
) -> Conclusion:
    """Judge one claim on its data; see :func:`jaxdyn.engine.verdict.decide`."""
    cells = by_cells(claim, data, list(by)) if by else None
    return Conclusion(decide(claim, data, control_data, narrowed=narrowed), cells)


def _conclude_here(task: Task, data: xr.Dataset, control_data: dict[str, xr.Dataset]) -> Conclusion:
    return conclude(task.claim, data, control_data, task.by, narrowed=task.narrowed)


def run_plan(
    plan_: Plan,
    pool: cf.Executor | None,
    progress: Progress | None = None,
    conclude: Callable[[Task, xr.Dataset, dict[str, xr.Dataset]], Conclusion | cf.Future[Conclusion]] = _conclude_here,
    concluded: Callable[[Verified], None] | None = None,
    at_once: int | None = None,
) -> list[Verified]:
    """Run a plan and judge each claim as soon as its runs are there.

    Args:
        plan_: from :func:`make_plan`.
        pool: executor for the chunks; None runs in this process.
        progress: a bar, updated after each chunk.
        conclude: judges one claim; may hand the work to other processes and return a future.
        concluded: called with every outcome as it is reached; what it raises ends the call.
        at_once: most chunks in the pool at a time; see :func:`jaxdyn.engine.sweep.execute`.

    Returns:
        One :class:`Verified` a claim, in the plan's order.
    """
    keys = [{Runs.key(r, cell) for r in task.requests for cell in r.grid.cells()} for task in plan_.tasks]
    waiting = {i: set(k) for i, k in enumerate(keys)}
    spent: dict[Program, Any] = {}
    judging: dict[cf.Future[Conclusion], tuple[int, Any, Any]] = {}
    results: dict[int, Verified] = {}

    def settle(i: int, conclusion: Conclusion, data: xr.Dataset | None, controls: dict[str, xr.Dataset]) -> None:
        costs = tuple(_cost(job.program, spent) for job in plan_.jobs if Runs.program_key(job.program) in keys[i])
        results[i] = Verified(plan_.tasks[i].claim, plan_.tasks[i], conclusion, data, controls, costs)
        if concluded is not None:
            concluded(results[i])

    def finished(job: Job, runs: Runs, cost: Any) -> None:
        spent[job.program], key = cost, Runs.program_key(job.program)
        for i in [i for i, left in waiting.items() if key in left]:
            waiting[i].discard(key)
            if isinstance(cost, Failure):
                del waiting[i]
                settle(i, Conclusion(error_decision(cost)), None, {})
            elif not waiting[i]:
                del waiting[i]
                conclusion, data, controls = _outcome(plan_.tasks[i], runs, conclude)
                if isinstance(conclusion, cf.Future):
                    judging[conclusion] = i, data, controls
                else:
                    settle(i, conclusion, data, controls)

    def meanwhile() -> None:
        for future in [f for f in judging if f.done()]:
            i, data, controls = judging.pop(future)
            settle(i, _judged_elsewhere(future), data, controls)

    try:
        execute(plan_.jobs, plan_.stored, pool, progress, finished, meanwhile, at_once)
        while judging:
            wait_for_first(judging)
            meanwhile()
    finally:
        timings.remember(plan_.jobs, spent)
    return [results[i] for i in range(len(plan_.tasks))]


def _cost(program: Program, spent: Mapping[Program, Any]) -> Cost:
    cost = spent.get(program)
    return Cost(program, **cost) if isinstance(cost, dict) else Cost(program)


def _judged_elsewhere(future: cf.Future[Conclusion]) -> Conclusion:
    """The conclusion of another process; one that cannot travel (an odd value in a check, say) is the claim's own error."""
    try:
        return future.result()
    except cf.BrokenExecutor:
        raise
    except Exception as error:
        return Conclusion(error_decision(error))


def _outcome(
    task: Task, runs: Runs, conclude: Callable[..., Any]
) -> tuple[Conclusion | cf.Future[Conclusion], xr.Dataset | None, dict[str, xr.Dataset]]:
    """The conclusion (or its future) and the data; observables that fit no Dataset are the claim's own error."""
    try:
        data, controls = runs.dataset(task.main), {n: runs.dataset(r) for n, r in task.controls.items()}
    except Exception as error:
        return Conclusion(error_decision(error, task.claim.trial)), None, {}
    for ds in (data, *controls.values()):
        ds.attrs = _attributes(task)
    return conclude(task, data, controls), data, controls


def _attributes(task: Task) -> dict[str, Any]:
    """What a Dataset that leaves jaxdyn should say of itself; words and numbers only, so that every file format takes them."""
    seeds = task.main.seeds
    contiguous = seeds == tuple(range(seeds[0], seeds[-1] + 1))
    return {
        "claim": task.claim.id,
        "statement": task.claim.statement,
        "source": task.claim.source,
        "scale": task.scale,
        "seeds": f"{seeds[0]}:{seeds[-1] + 1}" if contiguous else ",".join(map(str, seeds)),
        "versions": ", ".join(f"{name} {number}" for name, number in {"jaxdyn": __version__, **versions()}.items()),
    }


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
        ``.verdict``, ``.checks``, ``.controls``, ``.resolution``, ``.data`` (an ``xarray.Dataset``), ``.plot()``, ``.to_json()``.

    Raises:
        UsageError: unknown claim, field or value.
    """
    if isinstance(claim, str):
        found = registry.select([claim], load)
        if len(found) != 1:
            raise UsageError(f"{claim!r} matches {len(found)} claims; jd.verify takes one, jd.verify_many takes patterns")
        claim = found[0]
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
) -> list[Verified]:
    """Verify several claims in this process, planned together: claims on the same runs share programs and runs.

    ``jd.verify_many("joma.*")``, ``jd.verify_many(["joma.erf", my_claim], seeds=4)``

    Args:
        claims: patterns as on the command line, claims of your own, or a list of either.
        scale: ``quick`` or ``paper``.
        seeds: how many, or which; default: each claim's own.
        by: swept fields: judge each of their cells separately (``.by``).
        out: folder for the runs' shards; None keeps nothing.
        cluster: any ``concurrent.futures.Executor`` for the chunks.
        load: files with claims of your own.
        fields: overrides of the setting; every selected claim must have them.

    Returns:
        One :class:`Verified` a claim, in the order given.

    Raises:
        UsageError: a pattern that matches nothing, an unknown field or value.
    """
    chosen: dict[str, Claim] = {}
    for item in [claims] if isinstance(claims, str | Claim) else claims:
        found = [item] if isinstance(item, Claim) else registry.select([item], load)
        for claim in found:
            if chosen.setdefault(claim.id, claim) is not claim:
                raise UsageError(f"two claims are called {claim.id}")
    if not chosen:
        raise UsageError("claims=[] is not allowed: at least one pattern or claim is needed")
    folder = contextlib.nullcontext(None) if out is None else storage.open_folder(Path(out), "verify")
    with folder as store:
        made = make_plan(list(chosen.values()), scale=scale, seeds=seeds, overrides=fields, by=by, load=load, store=store)
        title = next(iter(chosen)) if len(chosen) == 1 else f"{len(chosen)} claims"
        with Progress(title) as progress:
            return run_plan(made, cluster, progress)
