"""More time: what rests on networks that were trained for a given time is read again at twice the time.

A claim that stands at twice the time is asked at eight times as well, where that costs no more than is left.

A statement that names the time is about that time. It names one that gives a number of steps or epochs, or a time t ("after 100
steps", "at $t = 10$"), or a condition for the end ("until", "as long as", "from ... on", "once"), or the time itself as a field's
value. Words such as "late", "at the end" and "in the same number of epochs" name none: the end is wherever training stops.
"""

from __future__ import annotations

import re
from typing import Any

from jaxdyn.attacks.answer import Answer, Finding, answered, not_applicable, not_asked
from jaxdyn.attacks.case import Attack, Case
from jaxdyn.attacks.runs import Judged, fresh, judge, make, opposite, own_seconds, short_of, task_of
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.grid import Grid
from jaxdyn.engine.claims.ranges import roles_of
from jaxdyn.engine.judging import agreement
from jaxdyn.errors import UsageError

__all__ = ["MORE_TIME", "names_time", "seconds", "times"]

LONGER = (2, 8)
WORDS = {2: "twice", 8: "eight times"}
UNITS = r"(?:steps?|epochs?|iterations?|updates?|records?)"
NUMBER = r"[\d.,]*\d"
NAMED = re.compile(
    rf"{NUMBER}\s*(?:\w+\s+)?{UNITS}\b|\b{UNITS}\s+{NUMBER}"  # 100 steps, step 100
    r"|\bt\s*(?:=|\\approx|\\le|\\ge|<|>)|\btime\s+\$?[\d\\]"  # t = 100, time 100
    r"|\b(?:until|as long as|as soon as|once|by the time|from\s+\S+.{0,40}\son)\b",
    re.DOTALL,
)


def times(grid: Grid, longer: int = LONGER[0]) -> dict[str, Any]:
    """The fields that say how long training lasts, and their values at a multiple of the time; none where all are zero."""
    found = {}
    for name, role in roles_of(grid.setting).items():
        values = grid.axes[name] if name in grid.axes else (getattr(grid.base, name),)
        if role == "time" and any(values):
            found[name] = [longer * value for value in values] if name in grid.axes else longer * values[0]
    return found


def names_time(claim: Claim, *texts: str) -> bool:
    """Whether a claim's title or statement, or another text, names the time of training."""
    whole = " ".join((claim.title, claim.statement, *texts))
    values = [value for value in times(claim.quick, 1).values() if not isinstance(value, list)]
    numbers = {float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", whole) if n.replace(",", "")}
    return NAMED.search(whole) is not None or any(value >= 10 and value in numbers for value in values)


def applies(case: Case) -> bool:
    """Whether a claim rests on networks that were trained for a time that its setting gives."""
    return case.claim.evidence == "network" and bool(times(case.claim.quick)) and not names_time(case.claim)


def seconds(case: Case) -> float:
    """Expected seconds of this attack at twice the time; 0 where it does not apply."""
    return LONGER[0] * own_seconds(case) if applies(case) else 0.0


def ask(case: Case) -> Answer:
    """Whether the claim comes out otherwise at twice the time."""
    claim = case.claim
    if claim.evidence != "network":
        return not_applicable(f"its evidence is {claim.evidence}: no network is trained for a time")
    if not times(claim.quick):
        return not_applicable("no number of its setting says how long training lasts")
    if names_time(claim):
        return not_applicable("its statement or title names the time")
    if case.measured and not claim.recorded:
        return not_applicable("nothing was recorded yet that could be another reading")
    if (cost := seconds(case)) > case.time.left:
        return not_asked(short_of(case, cost))
    asked, details, findings = dict[str, str](), list[str](), list[Finding]()
    for longer in LONGER:
        cost = longer * own_seconds(case)
        if asked and (findings or cost > case.time.left):
            break
        judged, findings, what = _asked(case, longer, cost)
        asked[what] = judged.verdict
        details.append(f"at {what} the claim's runs are {judged.verdict}" + (f": {judged.why}" if judged.why else ""))
    return answered("; ".join(details), findings, asked=asked)


def _asked(case: Case, longer: int, cost: float) -> tuple[Judged, list[Finding], str]:
    """What the judge says at a multiple of the time, the findings in it, and the time in words."""
    fields = times(case.claim.quick, longer)
    what = f"{WORDS[longer]} the time ({' and '.join(f'{name} = {_text(value)}' for name, value in fields.items())})"
    try:
        task = task_of(case, fields)
    except UsageError as error:
        return Judged("inconclusive", str(error)), [], what
    (data,) = make(case, [task], cost)
    judged = judge(case.claim, data)
    findings = _other_readings(case, judged, what) if case.measured else []
    if opposite(case.claim, judged) and (again := _again(case, fields, cost)) is not None:
        findings = [Finding("time", f"{again.verdict} at {what}: {again.why}")]
    return judged, findings, what


def _text(value: Any) -> str:
    return ", ".join(map(_text, value)) if isinstance(value, list) else f"{value:g}"


def _other_readings(case: Case, judged: Judged, what: str) -> list[Finding]:
    """Readings that do not agree with their records, those aside whose name names the time."""
    records = case.claim.recorded or {}
    ratio = (case.claim.recorded_seeds or case.claim.seeds) / len(case.result.task.main.seeds)
    found = []
    for reading in (r for r in judged.readings if r.name in records and not names_time(case.claim, r.name)):
        if (why := agreement.differs(reading, records[reading.name], ratio)) is not None:
            found.append(Finding(reading.name, f"another reading at {what}: {why}"))
    return found


def _again(case: Case, fields: dict[str, Any], cost: float) -> Judged | None:
    """What the judge says of fresh seeds at these times, if it is against the claim there, too."""
    seeds = None if len(case.result.task.main.seeds) == 1 else fresh(case)
    (data,) = make(case, [task_of(case, fields, seeds=seeds)], cost)
    judged = judge(case.claim, data)
    return judged if opposite(case.claim, judged) else None


MORE_TIME = Attack("more time", "Does the claim come out otherwise at twice the time of training?", ask, costly=True)
