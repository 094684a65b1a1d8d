"""The terminal output of a verification: the announcement, one line per claim, and the summary."""

from __future__ import annotations

import html
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxdyn.engine.base.devices import devices
from jaxdyn.engine.claims.description import outside
from jaxdyn.engine.claims.grid import field_table
from jaxdyn.engine.judging.check import Check, Reading
from jaxdyn.engine.judging.decision import Outcome
from jaxdyn.engine.verification.payload import by_chance
from jaxdyn.engine.verification.result import Result
from jaxdyn.engine.verification.task import Plan
from jaxdyn.report import studies
from jaxdyn.report.claim import finite
from jaxdyn.report.drawing import UNDRAWN
from jaxdyn.report.plain import plain
from jaxdyn.wording import duration, left_out, place, plural

__all__ = [
    *("FITTING", "JUDGING", "READING", "STARTING", "announcement", "expected_seconds", "lines", "summary", "too_late"),
    "untraced",
]

NOTICED = 3  # errors that are named, of predictions and of controls
MANY = 1000  # runs from which it is said what makes them
LONG, SAFE = 120.0, "; Ctrl-C is safe"  # seconds from which it is said that a run may be interrupted, and that a time is a guess
JUDGING, READING = 1.2, 0.2  # seconds to judge and draw a claim, or to read a stored conclusion
STARTING = 8.0  # seconds that a worker needs to import everything
SIGNS = {True: "✓", False: "✗", None: "?"}
FITTING = 0.85  # share of the given minutes to plan for: expected seconds are estimates, and no worker is always busy


def announcement(plan: Plan, workers: int, asked: int) -> str:
    """What a plan will run, for how many of the ``asked`` claims, and the expected time with this number of workers.

    That a time is a guess is said only of long ones.
    """
    stored = f", {plan.done} of them stored" if plan.done else ""
    seconds = expected_seconds(plan, workers)
    fresh = f", on seeds from {plan.tasks[0].main.seeds[0]} on" if plan.tasks and plan.tasks[0].fresh else ""
    parts = f"{plural(len(plan.jobs), 'program')}, {plural(plan.runs, 'run')}{_product(plan)}{stored}{fresh}"
    guessed, platform = plan.guessed(), devices().platform
    doubt = f", a guess: {plural(guessed, 'program')} not timed before" if guessed and seconds >= LONG else ""
    if guessed and platform != "cpu":
        expected = f"duration unknown: {plural(guessed, 'program')} never ran on a {platform} here"
    else:
        expected = f"{duration(seconds)} expected{doubt}{SAFE if seconds > LONG else ''}"
    of = f"{len(plan.tasks)} of {plural(asked, 'claim')}" if len(plan.tasks) < asked else plural(asked, "claim")
    return f"{of}: {parts}; {expected}"


def expected_seconds(plan: Plan, workers: int) -> float:
    """The expected time of a plan with this number of workers: no program is divided among them."""
    work = plan.job_seconds()
    return max([(sum(work) + JUDGING * len(plan.tasks)) / workers, *work]) + (STARTING if workers > 1 else 0.0)


def _product(plan: Plan) -> str:
    """Of a single claim with many runs: how many settings and seeds make them, and whether those of controls are counted, too."""
    if plan.runs < MANY or len(plan.tasks) != 1 or (settings := len(plan.tasks[0].main.grid.cells())) == 1:
        return ""
    seeds = len(plan.tasks[0].main.seeds)
    more = ", and controls" if plan.runs > settings * seeds else ""
    return f" ({plural(settings, 'setting')} × {plural(seeds, 'seed')}{more})"


def lines(result: Result, *, debug: bool = False, alone: bool = False) -> Iterator[str]:
    """One line per claim; if the verdict differs, also what failed, its worst run, and the command that repeats it.

    Of a claim that was asked for ``alone``, also its resolution.
    With ``--by``, one line per cell with its checks instead: cells have no expected verdict.
    """
    # the verdict
    claim, exploring = result.claim, result.by is not None
    sign = "·" if exploring and result.verdict != "error" and not result.as_expected else SIGNS[result.as_expected]
    if result.skipped:
        yield f" – {claim.id:<34} skipped: {result.message}"
        return
    expected = "" if result.as_expected or (exploring and result.verdict != "error") else f"  (expected {claim.expected})"
    study = studies.read_study(claim.id)
    differing = study is not None and studies.differs(study["claim"])
    differs = f"  ({studies.where_run(claim.id)}: {study['claim']['verdict']})" if study is not None and differing else ""
    yield f" {sign} {claim.id:<34} {result.verdict}{expected}{differs}"
    if alone and not exploring and (noticed := _resolution(result)):
        yield f"      {noticed}"
    if beyond := outside(claim, result.task.main.grid):
        yield f"      at {beyond}"
    if result.looks:
        yield f"      {result.looks}"
    if (figure := result.figure or "").startswith(UNDRAWN):
        yield f"      its figure could not be drawn: {html.unescape(figure.removeprefix(UNDRAWN).removesuffix('</p>'))}"
    for cell in result.by or []:
        yield from _cell(cell)
    if result.as_expected:
        return
    # why it differs
    if result.message:
        yield f"      {result.message}"
    if result.failure is not None and debug:
        yield from (f"      | {line}" for line in result.failure.traceback.rstrip().splitlines())
    if exploring:
        return
    failed = [c for c in result.checks if c.passed is False]
    for check in failed:
        yield f"      failed: {check}{f' (worst at {place(check.worst)})' if check.worst else ''}"
    for kind, outcomes in (("control", result.controls), ("rival", result.rivals)):
        for outcome in outcomes:
            if not outcome.rejected:
                own = result.task.controls.get(outcome.name) if kind == "control" else None
                same = own is not None and field_table(own.grid) == field_table(result.task.main.grid)
                yield f"      {kind} {outcome.name!r} {_alike(outcome, same)}"
    traceback = " --debug" if result.failure is not None and not debug else ""
    yield f"      repeat: {_repeat(result, failed)}{traceback}"


def _resolution(result: Result) -> str:
    """The smallest errors that the checks would reject, in words; empty unless all pass on the runs as they are."""
    if any(not check.passed for check in result.checks):
        return ""
    scale, mix = (finite(result.resolution.get(part)) for part in ("scale", "mix"))
    parts = [f"a prediction off by {_each(scale)}"] if scale else []
    parts += [f"data with a share of {_each(mix)}"] if mix else []
    return f"would also be noticed: {'; '.join(parts)}" if parts else ""


def _each(shares: Mapping[str, float]) -> str:
    """Shares with their names, the smallest first; of many the first ones, since the page has all."""
    first = sorted(shares.items(), key=lambda item: item[1])
    named = [f"{100 * share:.2g}% ({plain(name)})" for name, share in first[:NOTICED]]
    more = [f"{len(first) - NOTICED} more"] if len(first) > NOTICED else []
    *before, last = [*named, *more]
    return f"{', '.join(before)} or {last}" if before else last


def _alike(outcome: Outcome, same: bool) -> str:
    """Says that a control or rival is not rejected, and with which numbers; ``same``: its settings are the claim's own."""
    if same:
        return "has the settings of the claim's own runs, so that no check can tell them apart: let it break an assumption"
    if outcome.readings:
        return f"is not told apart: {'; '.join(map(str, outcome.readings))}"
    if outcome.reason:
        return f"is not rejected: {outcome.reason}"
    passed, undecided = ("; ".join(str(c) for c in outcome.checks if c.passed is wanted) for wanted in (True, None))
    words = ([f"the checks also pass with {passed}"] if passed else []) + ([f"undecided is {undecided}"] if undecided else [])
    return f"is not rejected: {'; '.join(words)}"


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    """One cell of a map: coordinates, verdict, and every check with its value; and the reason, if checks do not tell it."""
    head = f"      {', '.join(f'{k}={v}' for k, v in cell['at'].items())}: {cell['verdict']}"
    checks = [Check(**c) if "bound" in c else Reading(**c) for c in cell.get("checks", ())]
    silent = f"not asked: {', '.join(cell['unasked'])}" if cell.get("unasked") else None
    reason = cell["failed"] or silent if silent or cell["verdict"] == "error" or not checks else None
    if reason is not None:
        head += f" - {reason}"
    if lost := cell.get("left_out"):
        head += f" ({left_out(**lost)})"
    if len(checks) == 1 and reason is None:
        yield f"{head}  {checks[0]}"
    else:
        yield head
        yield from (f"        {SIGNS[c.passed] if isinstance(c, Check) else '·'} {c}" for c in checks)


def _repeat(result: Result, failed: Sequence[Check]) -> str:
    """The claim's command, narrowed to the seed of the worst run if a failed check names one."""
    command = result.task.command
    seed = next((c.worst["seed"] for c in failed if "seed" in c.worst), None)
    chosen = command.startswith("#") or any(option in command for option in (" --seeds ", " --fresh "))
    return command if seed is None or chosen else f"{command} --seeds {seed}:{seed + 1}"


def summary(results: Sequence[Result], planned: int, seconds: float, target: Any, minutes: float | None = None) -> str:
    """The last line: how many verdicts are as expected, or, with ``--by``, how many cells have each verdict.

    Of a single claim that is upheld as expected it says this in other words, since it is what newcomers run first. With ``minutes``
    it says by how much they were exceeded, and why.
    """
    over = 0.0 if minutes is None else seconds - 60 * minutes
    beyond = f" ({over:.0f} s more than given: a program that has begun is finished, its compilation included)"
    end = f"{seconds:.0f} s{beyond if over >= 10 else ''}; report: {_near(target)}"
    if any(v.by is not None for v in results):
        counts = Counter(cell["verdict"] for v in results for cell in v.by or [])
        return f"{plural(sum(counts.values()), 'cell')}: {', '.join(f'{n} {v}' for v, n in counts.items())}; {end}"
    if planned == 1 and [(v.verdict, v.as_expected) for v in results] == [("upheld", True)]:
        return f"1 claim upheld{_if_false(results)}, {end}"
    good, skipped = sum(v.as_expected for v in results), sum(v.skipped for v in results)
    left = planned - len(results)
    stopped = ""
    if left and minutes is not None:
        stopped = f", {plural(left, 'claim')} not run in the minutes given (the same command resumes with them)"
    elif left:
        stopped = f", stopped at the first that differs ({plural(left, 'claim')} not judged)"
    aside = f", {plural(skipped, 'claim')} skipped" if skipped else ""
    if not results:
        return f"nothing judged{stopped}, {end}"
    return f"{good} of {plural(len(results) - skipped, 'verdict')} as expected{aside}{stopped}{_by_chance(results)}, {end}"


def replaced(claims: int, command: str, folder: Path) -> str:
    """That the page of a folder's last call, with more claims, is replaced, and what shows it again."""
    again = f"{command} --out {shlex.quote(_near(folder))}"
    return f"this report replaces the last call's, of {plural(claims, 'claim')}; their runs are kept, and `{again}` shows it again"


def untraced(claims: int, seconds: float) -> str:
    """Why some of the claims that were expected to fit into the minutes given are not run: tracing took its share of these."""
    verb = "was" if claims == 1 else "were"
    return (
        f"{plural(claims, 'claim')} {verb} left for the next call: tracing, without which no runs are planned, "
        f"took {seconds:.0f} s, its share of the minutes given; what was traced is kept"
    )


def too_late(seconds: float, minutes: float) -> str:
    """Why no program is run although minutes were given: planning alone took them."""
    return (
        f"importing and tracing took {seconds:.0f} s of the {minutes * 60:.0f} s given, so that only what is stored is judged; "
        "the same command goes on from here, since what was traced is kept"
    )


def _near(path: Any) -> str:
    """A path, relative to the working folder if it lies inside."""
    whole = Path(path).absolute()
    return str(whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else path)


def _if_false(results: Sequence[Result]) -> str:
    """The probability with which a claim that is upheld with intervals would have been so if it were false, at most."""
    chance = by_chance(results)
    if not chance["claims"]:
        return ""
    return f"; were it false, chance would uphold it with a probability of {chance['expected']:.2g} at most"


def _by_chance(results: Sequence[Result]) -> str:
    """How many of the upheld claims may be expected to be false, at most."""
    chance = by_chance(results)
    if not chance["claims"]:
        return ""
    return f"; of {chance['claims']} upheld with intervals at most {chance['expected']:.2g} by chance"
