"""The fate of a row: its outcome and its scale, computed from the checks that are its sentence and from what decided them.

*Outcome*: a row is **reproduced** where the claims of its checks are upheld, or the intervals of its numbers hold the printed ones,
and **in kind** where only the sign or the order is so: a printed number lies outside, or the row says what is missing. *Scale*:
**full**; **smaller**, below half of the paper's width, depth, data or steps; **reduced**, in the theory's own equations only.
"""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.grid import Grid, field_table
from jaxdyn.engine.judging.digest import digest
from jaxdyn.engine.verification.last_verdicts import recorded_verdicts
from jaxdyn.report import studies
from jaxdyn.report.talks.rows import REDUCED, Home, Number, Row, homes, rows

__all__ = [
    "OUTCOMES",
    "SCALES",
    "Decision",
    "Fate",
    "Value",
    "agrees",
    "decision",
    "fate",
    "fates",
    "share",
    "source",
    "summary",
    "value",
]

OUTCOMES = {  # outcome of a row -> its name in a count, and its meaning
    "reproduced": ("reproduced", "what the slide says is a check of a claim that is upheld, or its number lies in our interval"),
    "in kind": ("in kind", "the sign or the order is as on the slide, the number is not, or was not asked; ours stands next to it"),
    "misprint": ("misprints", "refuted as printed, or at odds with itself, next to what is upheld in its place"),
    "not reproduced": ("not reproduced", "decided or measured, and not what the slide says"),
    "measured": ("measured", "a question left open, or numbers and curves of ours without a verdict on the slide's"),
    "reference": ("references", "cited only, with the reason"),
}
SCALES = {
    "full": "at least half of the paper's width, depth, data and steps, or a sentence that names no size",
    "smaller": "below that; the share is given",
    "reduced": "in the theory's own equations only",
}
HALF = 0.5
READ = ("batch", "length", "steps")  # sizes whose product is what a training reads
PAIRS = ("group", "residues", "elements of the group", "order of the largest group")  # sizes of groups, all pairs of which are data
WIDEST = 0.5  # of a printed number: a wider interval holds it without saying anything


@dataclass(frozen=True)
class Decision:
    """What decided a claim last: its study at paper scale if that is current, otherwise the recorded verdict at quick scale.

    Args:
        claim: the claim.
        grid: the settings that were run.
        verdict: None: none is recorded.
        date: of the runs.
        current: whether checks, controls and runs are still those.
        numbers: of checks, gates and readings by their names: ``[value]`` or ``[value, low, high]``; None: not finite.
    """

    claim: Claim
    grid: Grid
    verdict: str | None
    date: str
    current: bool
    numbers: Mapping[str, Sequence[float | None]]


@dataclass(frozen=True)
class Value:
    """A number of ours next to the printed one: its value and interval, whether they agree, and by what factor they differ.

    ``agree``: None where nothing is compared; ``date``: of the runs that it is of; empty: it is of the claim's record;
    ``earlier``: these runs are not what decided the claim last, or are not current; ``others``: fields that had other values there.
    """

    number: Number
    value: float
    interval: tuple[float, float] | None
    agree: bool | None = None
    factor: float | None = None
    date: str = ""
    earlier: bool = False
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fate:
    """The outcome of a row, a key of :data:`OUTCOMES`, and the scale at which it was decided, a key of :data:`SCALES`, or empty.

    ``share``: of the paper's size, where it is smaller; ``decisions``: of the claims that it names; ``values``: numbers of ours.
    """

    outcome: str
    scale: str = ""
    share: float | None = None
    decisions: tuple[Decision, ...] = ()
    values: tuple[Value, ...] = ()


@functools.cache
def decision(claim_id: str) -> Decision:
    """What decided a claim last."""
    claim = all_claims()[claim_id]
    study = studies.read_study(claim.id)
    if study is not None and not studies.changes(study, claim, whole=False).reasons:
        entry = study["claim"]
        ones = [*entry.get("checks", ()), *entry.get("gates", ()), *entry.get("readings", ())]
        numbers = {one["name"]: [one["value"], *(one["interval"] or ())] for one in ones}
        return Decision(claim, claim.grid("paper"), str(entry["verdict"]), study["environment"]["date"], True, numbers)
    found = recorded_verdicts().get(claim.id)
    if found is None:
        return Decision(claim, claim.quick, None, "", False, {})
    current = found["digest"] == digest(claim)
    return Decision(claim, claim.quick, found["verdict"], found["date"], current, found["numbers"])


def fate(row: Row, its_homes: Sequence[Home] = ()) -> Fate | None:
    """The fate of a row; None if nothing decides it and no reason is given.

    Args:
        row: not one that repeats another.
        its_homes: claims and experiments that name it.
    """
    if row.reference:
        return Fate("reference")
    decisions = tuple(map(decision, dict.fromkeys(name for name, _ in row.by)))
    values = tuple(value(one, decision(one.claim)) for one in row.ours)
    if not (decisions or its_homes):
        return None
    scale, part = _scale(row, decisions)
    return Fate(_outcome(row, decisions, values), scale, part, decisions, values)


def _outcome(row: Row, decisions: Sequence[Decision], values: Sequence[Value]) -> str:
    if row.fails:
        return "not reproduced"
    counted = [one.claim.counted for one in decisions]
    if row.misprint or "misprint" in counted:
        return "misprint"
    compared = [one.agree for one in values if one.agree is not None]
    sign = "upheld" in counted and all(one.verdict == "upheld" for one in decisions if one.claim.counted == "upheld")
    if row.order and decisions:
        return "in kind"
    if sign:
        return "reproduced" if all(compared) else "in kind"
    return "reproduced" if compared and all(compared) else "measured"


def _scale(row: Row, decisions: Sequence[Decision]) -> tuple[str, float | None]:
    """The largest scale at which one of the claims decides the row, and the share of the paper's size where that is smaller."""
    deciding = [one for one in decisions if one.claim.counted != "misprint"] or decisions
    full = [one for one in deciding if one.claim.evidence != "reduced"]
    if row.paper == REDUCED or (deciding and not full):
        return "reduced", None
    if not (deciding or isinstance(row.paper, Mapping)):
        return "", None
    shares = [part for one in full if (part := share(row, one.grid)) is not None]
    most = max(shares) if shares else share(row) or 1.0
    return ("full", None) if most >= HALF else ("smaller", most)


def share(row: Row, grid: Grid | None = None) -> float | None:
    """The smallest ratio of a size of the runs to the paper's, at most 1; None: not known. 1 where the slide names no size.

    Data are what a training reads: batch, length and steps multiplied, and of a group all pairs of its elements.
    """
    if not isinstance(row.paper, Mapping):
        return 1.0
    ratios = {}
    for name, given in row.paper.items():
        theirs, ours = given if isinstance(given, list) else (given, _largest(grid, name))
        if ours is not None:
            ratios[name] = (float(ours) / float(theirs)) ** (2 if name in PAIRS else 1)
    read = math.prod(ratio for name, ratio in ratios.items() if name in READ)
    return min(1.0, read, *ratios.values()) if ratios else None


def _largest(grid: Grid | None, field: str) -> float | None:
    """The largest value of a field in a grid; None: its setting has no such field."""
    if grid is None or field not in grid.setting.hints:
        return None
    return max(float(one) for one in grid.axes.get(field, (getattr(grid.base, field),)))


class Sourced(NamedTuple):
    """A number of a claim with its interval if it has one, the date of its runs, and how these differ from those of today.

    ``others``: fields whose values in these runs were not those of the claim's grid of today.
    """

    number: Sequence[float | None]
    date: str
    earlier: bool
    others: tuple[str, ...] = ()


def source(of: Decision, name: str) -> Sourced | None:
    """A check's, gate's or reading's number: from what decided its claim last, its record, or a study; None: nothing has it.

    A record on more seeds comes first.
    """
    record = (of.claim.records or {}).get(name)
    if name in of.numbers and not (record is not None and of.claim.recorded_seeds):
        return Sourced(of.numbers[name], of.date, not of.current)
    if record is not None:
        return Sourced([record["value"], *(record["interval"] or ())], "", not of.current)
    study = studies.read_study(of.claim.id)
    entry = study["claim"] if study is not None else {}
    for one in (*entry.get("readings", ()), *entry.get("checks", ()), *entry.get("gates", ())):
        if study is not None and one["name"] == name:
            return Sourced([one["value"], *(one["interval"] or ())], study["environment"]["date"], True, _others(entry, of.claim))
    return None


def _others(entry: Mapping[str, Any], claim: Claim) -> tuple[str, ...]:
    """Fields of a study's runs that had other values than in the claim's grid of today."""
    now = json.loads(json.dumps({row["name"]: row["value"] for row in field_table(claim.grid("paper"))}))
    then = entry.get("settings", {})
    return tuple(name for name, value in then.items() if name in now and now[name] != value)


def value(number: Number, of: Decision) -> Value:
    """A number of ours, from what decided its claim last, or else from its record or a study.

    Raises:
        ValueError: none of them has it.
    """
    seen = source(of, number.name)
    if seen is None:
        raise ValueError(f"{number.claim} has no recorded number called {number.name!r}")
    mean, *interval = (math.nan if x is None else float(x) for x in seen.number)
    around = (interval[0], interval[1]) if interval else None
    ours = Value(number, mean, around, date=seen.date, earlier=seen.earlier, others=seen.others)
    if not number.printed:
        return ours
    printed = float(number.printed.lstrip("<>"))
    return replace(ours, agree=agrees(number.printed, mean, around), factor=mean / printed if printed else None)


def agrees(printed: str, value: float, interval: tuple[float, float] | None) -> bool:
    """Whether a printed number, as far as its digits go, lies in an interval that is narrow enough to say something.

    Without an interval the value itself has to round to it. A printed bound (``">0.9"``) holds for the whole interval.
    """
    low, high = interval or (value, value)
    if printed[:1] in ("<", ">"):
        bound = float(printed[1:])
        return math.isfinite(value) and (low > bound if printed[0] == ">" else high < bound)
    digits = len(printed.partition(".")[2])
    theirs, half = float(printed), 0.5 * 10.0**-digits
    if not (math.isfinite(low) and math.isfinite(high)) or high - low > max(WIDEST * abs(theirs), 2 * half):
        return False
    return low <= theirs + half and theirs - half <= high


def fates(claims: Sequence[Claim], root: Path) -> dict[str, Fate | None]:
    """The fate of every row that repeats no other, by its name."""
    by_row = homes(claims, root)
    return {row.name: fate(row, by_row.get(row.name, ())) for row in rows().values() if not row.same}


def summary(found: Mapping[str, Fate | None]) -> Counter[tuple[str, str]]:
    """Number of rows with each outcome and scale."""
    return Counter((one.outcome, one.scale) for one in found.values() if one is not None)
