"""New runs for costly attacks: of the claim's trial or another one, without its controls, and what the judge says of them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import xarray as xr

from jaxdyn.attacks.case import Case
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.judging.check import Check, Reading
from jaxdyn.engine.judging.verdict import judge_cell
from jaxdyn.engine.verification.result import Result
from jaxdyn.engine.verification.task import Task
from jaxdyn.engine.verification.verify import make_tasks, task_costs

__all__ = ["FRESH", "Judged", "fresh", "judge", "make", "opposite", "own_seconds", "run", "seconds_of", "short_of", "task_of"]

FRESH = 55_500_001  # first of the seeds that no claim has used
OPPOSITE = {"upheld": "refuted", "refuted": "upheld"}


def unjudged(ds: xr.Dataset) -> list[Reading]:
    """The judge of runs that are only made."""
    return [Reading("seeds", float(ds.sizes["seed"]))]


def task_of(
    case: Case, overrides: Mapping[str, Any] | None = None, *, trial: Callable[..., Any] | None = None, seeds: Any = None
) -> Task:
    """Runs on the claim's grid and seeds, without its controls, that are judged by :func:`judge` alone.

    Args:
        case: the case.
        overrides: fields of the setting.
        trial: another one than the claim's.
        seeds: others than those of the claim's result.

    Raises:
        UsageError: a value is not allowed.
    """
    bare: dict[str, Any] = {"trial": trial or case.claim.trial, "judge": unjudged, "expected": "measured", "min_ok": 0.0}
    bare |= {"controls": {}, "rivals": {}, "assumes": (), "decides": {}, "excused": {}, "holds": {}}
    bare |= dict.fromkeys(("counterpart", "sibling", "printed", "recorded", "recorded_seeds", "bounds", "max_seeds"))
    claim = dataclasses.replace(case.claim, **bare)
    task = case.result.task
    return make_tasks([claim], seeds=task.main.seeds if seeds is None else seeds, overrides=overrides, load=task.load)[0]


def fresh(case: Case, number: int = 0) -> range:
    """Seeds that nobody has used, as many as the claim's own; sets of different numbers share none."""
    count, most = len(case.result.task.main.seeds), max(case.claim.seeds, case.claim.max_seeds or 0)
    return range(FRESH + number * most, FRESH + number * most + count)


def seconds_of(*tasks: Task) -> float:
    """Expected seconds of some tasks that are run together."""
    return sum(task_costs(tasks).values())


def own_seconds(case: Case) -> float:
    """Expected seconds of the claim's own runs, without its controls."""
    return seconds_of(dataclasses.replace(case.result.task, controls={}))


def short_of(case: Case, seconds: float) -> str:
    """Why something is not asked: what it costs, and what is left."""
    return f"it takes about {seconds:.0f} s, and {case.time.left:.0f} s are left for new runs"


def make(case: Case, tasks: Sequence[Task], expected: float) -> list[xr.Dataset | None]:
    """The data of some tasks, None where the trial raises; what they cost is taken from the budget.

    Args:
        case: the case.
        tasks: from :func:`task_of`.
        expected: as for :func:`run`.
    """
    return [result.data for result in run(case, tasks, expected)]


def run(case: Case, tasks: Sequence[Task], expected: float) -> list[Result]:
    """The results of some tasks; what they cost is taken from the budget.

    Args:
        case: the case.
        tasks: what to run.
        expected: their seconds, which count if all runs were stored: so that what is asked does not depend on what was.
    """
    before = time.process_time()
    results = case.run(tasks)
    made = any(cost.runs for result in results for cost in result.costs)
    case.time.spend(time.process_time() - before if made else expected)
    return results


@dataclasses.dataclass(frozen=True)
class Judged:
    """What the judge says of other runs.

    Args:
        verdict: upheld, refuted, measured, inconclusive or error.
        why: the checks or gates behind it, or the reason.
        readings: of a measured claim.
    """

    verdict: str
    why: str
    readings: tuple[Reading, ...] = ()


def judge(claim: Claim, data: xr.Dataset | None) -> Judged:
    """What a claim's judge says of other runs: its gates and checks count, not its controls and rivals."""
    if data is None:
        return Judged("error", "the trial raises")
    found = judge_cell(claim, data, rivals=False)
    answers, verdict = found.get("checks", []), found["verdict"]
    readings = tuple(Reading(**one) for one in answers if "passed" not in one)
    checks = [Check(**one) for one in answers if "passed" in one]
    behind = [c for c in checks if c.passed is False] or checks
    return Judged(verdict, "; ".join(map(str, behind)) if verdict in OPPOSITE else found["failed"] or "", readings)


def opposite(claim: Claim, judged: Judged) -> bool:
    """Whether other runs come out against the claim: refuted where it is upheld, or the other way round."""
    return judged.verdict == OPPOSITE.get(claim.expected)
