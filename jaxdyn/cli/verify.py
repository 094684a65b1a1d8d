"""``jaxdyn verify``: plans the runs, starts workers, draws figures, and writes results and the report."""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import dataclasses
import functools
import html
import itertools
import math
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from jaxdyn.attacks.recorded import brief_of
from jaxdyn.cli.cards import unused
from jaxdyn.cli.conclusions import basis, is_concluded, judged_by, load_conclusion, save_conclusion
from jaxdyn.cli.pool import executor, reserved, worker_count
from jaxdyn.engine.base.devices import check_options, devices
from jaxdyn.engine.base.failure import Failure, let_through
from jaxdyn.engine.base.jsonable import text
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.judging.decision import Decision, Terms
from jaxdyn.engine.judging.digest import whole_digest
from jaxdyn.engine.programs.direct import untraced
from jaxdyn.engine.programs.program import check_device
from jaxdyn.engine.storage.store import check_writable, open_folder
from jaxdyn.engine.verification.last_verdicts import with_looks
from jaxdyn.engine.verification.payload import payload
from jaxdyn.engine.verification.result import Result
from jaxdyn.engine.verification.task import Plan, Task
from jaxdyn.engine.verification.verify import (
    Elsewhere,
    cheapest,
    conclude,
    make_tasks,
    plan_tasks,
    program_count,
    program_keys,
    quickest_theory,
    run_plan,
    task_costs,
    tasks_within,
)
from jaxdyn.errors import UsageError
from jaxdyn.report import page as report
from jaxdyn.report import studies, terminal
from jaxdyn.report.drawing import UNDRAWN, drawn
from jaxdyn.report.earlier import Earlier, add_earlier, read_earlier
from jaxdyn.report.frame import CHECKS, write_csv
from jaxdyn.report.history import Call, call, damage, earlier_calls, read_history, write_history
from jaxdyn.report.results import FORMAT, LEFT_OUT, read_results, write_results
from jaxdyn.wording import plural

__all__ = ["rebuild", "verify_command", "claims_here", "conclude_by_id", "version_of_claim"]

OFTEN, SELDOM = 10.0, 20.0  # least time between two writings of the page: in seconds, and in multiples of what one takes
SOON = 5.0  # work below this many expected seconds is run in this process, since workers take time to start
MANY = 20  # number of programs from which on tracing is announced
LAST, TAIL = 45.0, 0.1  # with --minutes, programs are to end before the last seconds, or before this last share if it is shorter
TRACED = 0.5  # with --minutes, share of the time before these that tracing may take


def draw(claim: Claim, data: xr.Dataset, narrowed: bool = False) -> str:
    """A claim's figure as HTML, or a sentence if plotting fails: the verdict must not be lost."""
    try:
        return text(drawn(claim.plot, data, narrowed))
    except BaseException as error:
        let_through(error)
        failure = Failure.of(error)
        return text(f"{UNDRAWN}{failure.kind}: {html.escape(failure.message)}</p>")


def _conclude_and_draw(
    claim: Claim, data: xr.Dataset, controls: dict[str, xr.Dataset], by: Sequence[str], terms: Terms, shown: bool
) -> Decision:
    decision = conclude(claim, data, controls, by, terms)
    return dataclasses.replace(decision, figure=draw(claim, data, terms.narrowed)) if shown else decision


def _same_figures(claims: Sequence[Claim]) -> dict[str, str]:
    """Claims that share the figure of another claim on the same runs, by id: these figures are drawn only once."""
    plots = {claim.id: claim.plot for claim in claims}
    return {c.id: c.sibling for c in claims if c.sibling in plots and plots[c.sibling] is c.plot}


@functools.cache
def claims_here(theory: str, load: tuple[str, ...]) -> dict[str, Claim]:
    """In a worker: the claims of one theory and of the user's files, imported once."""
    return registry.all_claims(load, {theory})


def version_of_claim(claim: Claim) -> str | None:
    """What tells whether another process has the same claim: the code behind it, or all that a user's own consists of."""
    return judged_by(claim) or whole_digest(claim)


def conclude_by_id(
    folder: Path, basis_hash: str | None, version: str, claim_id: str, load: tuple[str, ...], *rest: Any
) -> Decision | None:
    """In a worker: look the claim up by its id (judges and plots cannot be pickled), conclude and save.

    None where it is not of this version, since its file was edited after the first process had imported it.
    """
    claims = claims_here(claim_id.split(".")[0], load)
    claim = claims[claim_id] if claim_id in claims else registry.select([claim_id], load)[0]
    return _conclude_and_save(folder, basis_hash, claim, *rest) if version_of_claim(claim) == version else None


def _conclude_and_save(folder: Path, basis_hash: str | None, claim: Claim, *rest: Any) -> Decision:
    decision = _conclude_and_draw(claim, *rest)
    save_conclusion(folder, claim.id, basis_hash, decision)
    return decision


def _conclude_task(
    pool: cf.Executor | None,
    folder: Path,
    undrawn: Collection[str],
    versions: Mapping[str, str | None],
    task: Task,
    data: xr.Dataset,
    controls: dict[str, xr.Dataset],
) -> Decision | Elsewhere:
    drawn = task.claim.id not in undrawn
    basis_hash = basis(task, data, controls, drawn)
    if (before := load_conclusion(folder, task.claim.id, basis_hash)) is not None:
        return before
    rest = (data, controls, task.by, task.terms, drawn)
    here = functools.partial(_conclude_and_save, folder, basis_hash, task.claim, *rest)
    if isinstance(pool, cf.ProcessPoolExecutor) and (version := versions[task.claim.id]) is not None:
        return Elsewhere(pool.submit(conclude_by_id, folder, basis_hash, version, task.claim.id, task.load, *rest), here)
    return here()


def _limits(began: float, minutes: float | None) -> tuple[float, float]:
    """When the minutes given are over, and when the last programs are to end before; never without minutes."""
    seconds = math.inf if minutes is None else 60 * minutes
    return began + seconds, began + seconds - min(LAST, TAIL * seconds)


def _fitting(tasks: list[Task], folder: Path, end: float, workers: int) -> list[Task]:
    """The tasks that fit into the time left on all workers, the most important first; all if ``end`` is infinite.

    Stored conclusions cost only the time to read them.
    """
    if end == math.inf:
        return tasks
    left = terminal.FITTING * (end - time.monotonic()) - (terminal.STARTING if workers > 1 else 0)
    done = [is_concluded(folder, task.claim) for task in tasks]
    each = [terminal.READING if one else terminal.JUDGING for one in done]
    return tasks_within(tasks, workers * left, each, program_keys(list(itertools.compress(tasks, done))), longest=left)


def _first(tasks: Sequence[Task], folder: Path, scale: str, same: Collection[str], concluded: Callable[[Result], None]) -> None:
    """Run and judge the cheapest claim in this process: a first verdict within seconds."""
    task, seconds = cheapest([task for task in tasks if task.missing is None] or tasks)
    if seconds < SOON:
        run_plan(
            plan_tasks([task], scale=scale, store=folder),
            None,
            None,
            functools.partial(_conclude_task, None, folder, same, {}),
            concluded,
        )


def _opening(folder: Path, concluded: Callable[[Result], None], **options: Any) -> None:
    """If all claims were requested: a first verdict, from the theory with the quickest program, before the others are imported."""
    theory = quickest_theory()
    if theory is not None:
        claims = list(registry.all_claims((), {theory}).values())
        _first(make_tasks(claims, **options), folder, options["scale"], _same_figures(claims), concluded)


def _device_of_workers(count: int, cluster: str | None) -> str:
    """The devices of the workers, as the page and the stored results name them."""
    where = devices()
    workers = "each worker of the cluster" if cluster else f"each of {plural(count, 'worker')}"
    return f"{where.kind} ({where.count} for JAX in {workers})"


def _planned(chosen: list[Task], tasks: list[Task], progress: Progress, workers: int, until: float, **options: Any) -> Plan:
    """The plan of the tasks chosen of all, announced; what it takes, and what will not be stored, is said before anything is run.

    If time is limited, only a share of it is used for tracing, and the shortest jobs come first: even if costs were underestimated,
    most claims are reached. What is stored or compiled is known once a plan is made: the time that it leaves is filled with others.
    """
    began = time.monotonic()
    plan = _traced_plan(chosen, progress, until, **options)
    while until < math.inf and len(plan.tasks) == len(chosen) and (more := _more(plan, tasks, workers, until)):
        chosen = [*chosen, *more]
        plan = _traced_plan(chosen, progress, until, **options)
    if until < math.inf:
        plan = dataclasses.replace(plan, jobs=plan.jobs[::-1])
    if left := len(chosen) - len(plan.tasks):
        progress.say(terminal.untraced(left, time.monotonic() - began))
    progress.say(terminal.announcement(plan, workers, len(tasks)))
    if (warning := plan.warning()) is not None:
        progress.say(warning)
    return plan


def _say_if_late(plan: Plan, progress: Progress, until: float, began: float, minutes: float | None) -> None:
    """Say that the time is over before anything is run, so that only what is stored is judged."""
    now = time.monotonic()
    if minutes is not None and now > until and plan.done < plan.runs:
        progress.say(terminal.too_late(now - began, minutes))


def _traced_plan(chosen: list[Task], progress: Progress, until: float, **options: Any) -> Plan:
    """The plan of the tasks that are traced in their share of the time; that many programs must be traced is said before."""
    unknown = len(untraced(p for task in chosen for r in task.requests for p in r.programs.values()))
    if unknown >= MANY:
        progress.say(f"tracing {plural(unknown, 'program')} once, to plan the runs")
    now = time.monotonic()
    tell = functools.partial(progress.part, "tracing", "programs")
    return plan_tasks(chosen, tell=tell, until=now + TRACED * (until - now), **options)


def _more(plan: Plan, tasks: Sequence[Task], workers: int, until: float) -> list[Task]:
    """The tasks, not yet planned, that fit into the time that a plan leaves."""
    planned = {task.claim.id for task in plan.tasks}
    others = [task for task in tasks if task.claim.id not in planned]
    left = terminal.FITTING * (until - time.monotonic()) - terminal.expected_seconds(plan, workers)
    each = [terminal.JUDGING] * len(others)
    return tasks_within(others, workers * left, each, program_keys(plan.tasks), longest=left, at_least_one=False)


class _Stop(Exception):
    """Raised at the first verdict that differs, with ``--fail-fast``."""


def _checked(
    patterns: Sequence[str], load: Sequence[str], report: Path | None, workers: int | None, cluster: str | None, csv: Path | None
) -> list[str]:
    """Refuse wrong arguments before anything is written; the cards of the workers."""
    check_options()
    cards = reserved(workers, cluster)
    if report is not None:
        check_writable(report)
    if csv is not None:
        check_writable(csv / CHECKS)
    if patterns:
        registry.select(patterns, load)
    return cards


def verify_command(
    patterns: Sequence[str],
    *,
    scale: str,
    seeds: Any,
    fresh: int | None = None,
    sets: dict[str, Any],
    by: list[str],
    out: Path,
    report: Path | None,
    workers: int | None,
    cluster: str | None,
    load: Sequence[str],
    fail_fast: bool = False,
    debug: bool = False,
    minutes: float | None = None,
    csv: Path | None = None,
    command: str = "jaxdyn verify",
    began: float,
) -> tuple[dict[str, Any], int]:
    """Verify the selected claims, or those that fit into ``minutes`` from ``began`` on; returns the JSON and the exit code."""
    end, until = _limits(began, minutes)
    options = {"scale": scale, "seeds": seeds, "fresh": fresh, "overrides": sets, "by": by}
    cards = _checked(patterns, load, report, workers, cluster, csv)
    with open_folder(out, "verify") as folder:
        check_device()
        with contextlib.suppress(_Stop), Progress("verifying") as progress:
            page = _Page(folder, report or folder / "index.html", progress, debug, fail_fast, began, load, command)
            if (sentence := unused()) is not None:
                progress.say(sentence)
            if not (patterns or load or sets or by or cluster or fail_fast or workers == 1 or cards):
                _opening(folder, page.concluded, **options)
            # which claims: all that were selected, or those that fit into the minutes
            page.claims = registry.select(patterns, load)
            page.same = same = _same_figures(page.claims)
            tasks = make_tasks(page.claims, load=load, **options)
            count = worker_count(workers, program_count(tasks))
            chosen = _fitting(tasks, folder, end, count)
            if workers is None and sum(task_costs(chosen).values()) < SOON:
                count = 1  # they end before a worker would have imported everything
            # run and judge, with one chunk more than workers in the pool, so that none waits for this process
            with executor(count, cluster, cards) as (pool, count):
                if cluster or cards:
                    page.device = _device_of_workers(count, cluster)
                    chosen = _fitting(tasks, folder, end, count)  # again, by the costs on those devices
                page.chosen = len(chosen)
                if pool is not None and not (cluster or cards or page.results):
                    _first(chosen, folder, scale, same, page.concluded)
                plan = _planned(chosen, tasks, progress, count, until, scale=scale, store=folder, pool=pool)
                page.chosen = len(plan.tasks)
                _say_if_late(plan, progress, until, began, minutes)
                versions = {t.claim.id: version_of_claim(t.claim) for t in plan.tasks}  # now: files may be edited in the meantime
                conclude_task = functools.partial(_conclude_task, pool, folder, same, versions)
                run_plan(plan, pool, progress, conclude_task, page.concluded, None if cluster else count + 1, until)
        with Progress("writing the report"):
            whole = page.write()
            if csv is not None:
                write_csv(csv, page.outcomes)
    page.close(minutes)
    return whole, _exit_code(page.outcomes)


@dataclasses.dataclass
class _Page:
    """Collects outcomes, prints each of them, and writes results, figures and page from time to time and at the end.

    Args:
        folder: the output folder.
        target: the page's file.
        progress: prints each outcome.
        debug: whether errors are shown with their tracebacks.
        fail_fast: whether to stop at the first outcome that differs.
        began: when the command began, by ``time.monotonic``.
        load: files with users' own claims.
        command: what was typed.
        claims: all requested claims, once they are known; until then no page is written.
        same: claims that share another claim's figure.
        chosen: number of claims to run.
        stale: of claims that were not run, whether they have changed since an earlier call.
        device: devices of other processes that make the runs; empty if this process makes them.
    """

    folder: Path
    target: Path
    progress: Progress
    debug: bool
    fail_fast: bool
    began: float
    load: Sequence[str] = ()
    command: str = ""
    claims: Sequence[Claim] = ()
    same: Mapping[str, str] = dataclasses.field(default_factory=dict)
    chosen: int = 0
    device: str = ""
    results: dict[str, Result] = dataclasses.field(default_factory=dict)
    next: float = 0.0
    earlier: list[Call] = dataclasses.field(default_factory=list)
    stale: dict[str, bool] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.earlier = read_history(self.folder)
        if lost := damage(self.folder):
            _say(lost)

    @functools.cached_property
    def before(self) -> dict[str, Earlier]:
        """What the folder held of each claim before this call wrote its first results."""
        try:
            return read_earlier(self.folder)
        except UsageError as error:
            _say(f"What the folder held before is left out: {error}")
            return {}

    def has_changed(self, claims: Mapping[str, Claim], name: str, entry: Mapping[str, Any]) -> bool:
        """Whether the runs or the judge of a claim that this call did not run are others than those of its earlier entry."""
        if name not in self.stale:
            self.stale[name] = studies.may_have_changed(entry, claims[name])
        return self.stale[name]

    @property
    def outcomes(self) -> list[Result]:
        """The outcomes so far, in the order of the claims."""
        return [self.results[claim.id] for claim in self.claims if claim.id in self.results]

    def concluded(self, verified: Result) -> None:
        """Print an outcome, and write the page if it is due."""
        if verified.claim.id in self.results:
            return
        self.results[verified.claim.id] = verified = with_looks(verified)
        for line in terminal.lines(verified, debug=self.debug, alone=len(self.claims) == 1):
            self.progress.say(line)
        if self.fail_fast and _bad(verified):
            raise _Stop
        if self.claims and self.due():
            self.write(f"{len(self.results)} of {plural(self.chosen, 'claim')} judged")

    def close(self, minutes: float | None) -> None:
        """Print the last line, and which larger page of the same folder this one has replaced."""
        _say(terminal.summary(self.outcomes, len(self.claims), time.monotonic() - self.began, self.target, minutes=minutes))
        if self.earlier and (last := self.earlier[-1])["claims"] > len(self.claims) and self.command != last["command"]:
            _say(terminal.replaced(last["claims"], last["command"], self.folder))

    def due(self) -> bool:
        """Whether to write now: soon after the first outcome, later so rarely that writing takes a twentieth of the time."""
        return time.monotonic() > self.next

    def write(self, unfinished: str = "") -> dict[str, Any]:
        """Write results, figures and page; returns the JSON object. ``unfinished`` says how much is done."""
        now, outcomes = time.monotonic(), self.outcomes
        others = [claim for claim in self.claims if claim.id not in self.results]
        whole = {"format": FORMAT, **payload(outcomes, now - self.began, others, self.load)}
        for entry in whole["claims"]:
            entry["referee"] = brief_of(entry["id"])
        if self.device:
            whole["environment"]["device"] = self.device
        if unfinished:
            whole["unfinished"] = unfinished
            for entry in whole["not_run"]:
                entry["waiting"] = True
        if self.debug:
            _add_tracebacks(whole, outcomes)
        self.share_figures(waiting=bool(unfinished))
        figures = {v.claim.id: v.figure for v in self.outcomes if v.figure is not None}
        if others:
            figures |= add_earlier(whole["not_run"], self.before, functools.partial(self.has_changed, {c.id: c for c in others}))
        write_results(self.folder, whole, figures)
        write_history(self.folder, [*self.earlier, call(whole, self.command)])
        rebuild(self.folder, self.target)
        self.next = time.monotonic() + max(OFTEN, SELDOM * (time.monotonic() - now))
        return whole

    def share_figures(self, waiting: bool) -> None:
        """Give claims the figure of the claim whose figure they share, if it is of the same runs; draw the others.

        Either claim may have been judged on more seeds than the other. ``waiting``: the other one may still be judged.
        """
        for own, other in self.same.items():
            verified, shared = self.results.get(own), self.results.get(other)
            if verified is None or verified.data is None or verified.figure is not None or (waiting and shared is None):
                continue
            same = shared is not None and shared.figure is not None and shared.task.main == verified.task.main
            figure = shared.figure if same and shared else draw(verified.claim, verified.data, verified.task.narrowed)
            self.results[own] = dataclasses.replace(verified, figure=figure)


def _exit_code(results: Sequence[Result]) -> int:
    """2 if a claim ends in an error, which is a mistake in it and no verdict; 1 if a verdict differs; else 0."""
    return 2 if any(result.verdict == "error" for result in results) else int(any(map(_bad, results)))


def _bad(verified: Result) -> bool:
    """Whether a claim ends otherwise than expected or, with ``--by``, in an error; never if it is skipped."""
    return verified.verdict == "error" if verified.by is not None else not (verified.as_expected or verified.skipped)


def _add_tracebacks(whole: dict[str, Any], results: Sequence[Result]) -> None:
    for entry, verified in zip(whole["claims"], results, strict=True):
        failure = verified.failure
        if failure is not None:
            entry["error"]["traceback"] = failure.traceback


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def rebuild(folder: Path, target: Path) -> None:
    """Write the report from the stored results of a verification; says if their figures are not there.

    Raises:
        UsageError: the folder holds no results.
    """
    whole, figures = read_results(folder)
    if LEFT_OUT in whole:
        _say(whole[LEFT_OUT])
    if lost := damage(folder):
        _say(lost)
    report.write(target, {**whole, "history": earlier_calls(folder, whole)}, figures)
