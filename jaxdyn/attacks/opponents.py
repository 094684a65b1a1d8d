"""Opponents: does each check reject more than nothing, and is each control outside of what the claim states?

A control that is a setting differs from the claim's cells in one field, so that what is rejected is known; a control that changes
several says why (``Control.why``). A control whose changed values all lie inside the stated domain, which is the span of the
values of a swept field and what the claim ``holds``, is a counterexample unless it says why it is not.

An opponent changes a number that a check compares. A control names words of the claim, or of an assumption, that it breaks: its own
name has one of them (the changed field's name and its letter count), or ``Control.breaks`` says which.

Each check, or reading of a measured claim, rejects a control or a rival that is not the mechanism switched off (``jd.off``): a
law that is told apart from nothing alone may be any law. A measured claim on a network or a flow has such a rival besides.
Readings are told apart from an opponent outside the interval in which a repetition agrees with the record, which is wider than
the record.

A rival that gives numbers gives such as the check can have (:mod:`jaxdyn.attacks.attainable`).

The margin of a check to its nearest opponent is how far the opponent's value lies beyond the bound, over the distance of the
claim's own value from that bound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxdyn.attacks.answer import Answer, Finding, answered, not_applicable
from jaxdyn.attacks.attainable import answers, unattainable
from jaxdyn.attacks.case import Attack, Case
from jaxdyn.attacks.promises import MATH
from jaxdyn.attacks.symbols import field_symbol
from jaxdyn.engine.claims.claim import Claim, Control
from jaxdyn.engine.claims.edits import Off
from jaxdyn.engine.claims.grid import Grid
from jaxdyn.engine.judging import agreement
from jaxdyn.engine.judging.check import Check, Reading
from jaxdyn.engine.judging.decision import Outcome

__all__ = ["OPPONENTS", "changed", "inside", "breaking_nothing"]

STEM = 5  # letters in which words with one meaning agree: rotate, rotation
COMMON = frozenset(
    "with without than other others same more less most each every from into that this their its alone runs half twice while been "
    "have does none only both also over under between after before where which place value values number numbers".split()
)
UPRIGHT = frozenset(
    r"\frac \sum \prod \sqrt \ln \log \exp \max \min \mathrm \text \left \right \le \ge \cdot \times \tfrac \hat \bar".split()
)
TRAINED = ("network", "flow")  # evidence with a mechanism that a measured claim has to be told apart from


def ask(case: Case) -> Answer:
    """What is wrong with the claim's controls and rivals, and the margins of its checks."""
    claim = case.claim
    idle = [*_idle(case)]
    if claim.expected == "refuted":
        if idle:
            return answered("its form is refuted: of its opponents it is asked whether they change anything", idle)
        return not_applicable("its form is refuted: the counterpart's claim is asked")
    nearest = _margins(case)
    findings = [
        *idle,
        *_controls(claim),
        *breaking_nothing(claim),
        *_told_apart_from_nothing(case),
        *_blunt(case),
        *unattainable(case),
    ]
    what = "readings that are told apart from" if case.measured else "checks that reject"
    detail = f"{what} a control, or a rival that is not the mechanism switched off: {len(nearest)} of {len(_names(case))}"
    if finite := {name: one for name, one in nearest.items() if one["margin"] is not None}:
        name = min(finite, key=lambda n: finite[n]["margin"])
        detail += f"; nearest is {finite[name]['opponent']!r} to {name!r}, at {finite[name]['margin']:.2g} times its own distance"
    facts: dict[str, Any] = {"margins": nearest}
    if case.measured:
        facts["not told apart from nothing"] = _like_nothing(case)
    return answered(detail, findings, **facts)


def _idle(case: Case) -> Iterator[Finding]:
    """Opponents that change no number that a check compares."""
    own = {one.name: (one.value, one.interval) for one in case.own.values()}  # as opponents are asked
    for outcome in _outcomes(case):
        theirs = {one.name: (one.value, one.interval) for one in answers(outcome)}
        if theirs and theirs == own:
            yield Finding(outcome.name, f"{outcome.name!r} changes no number that a check compares")


# controls that are settings


def _controls(claim: Claim) -> Iterator[Finding]:
    """Controls that change several fields, or lie inside the domain, without saying why."""
    for name, control in claim.controls.items():
        if not isinstance(control, Control) or not isinstance(control.breach, Mapping) or control.why:
            continue
        fields = changed(claim.quick, control.breach)
        if all(inside(claim, field, values) for field, values in fields.items()):
            yield Finding(name, f"control {name!r} lies inside what the claim states ({_where(claim, fields)}): a counterexample")
        elif len(fields) > 1:
            yield Finding(name, f"control {name!r} changes {len(fields)} fields at once ({', '.join(fields)}) and does not say why")


def breaking_nothing(claim: Claim) -> Iterator[Finding]:
    """Controls that name no words of the claim, or words that are not there."""
    text = " ".join((claim.title, claim.statement, claim.tested or "", *map(str, claim.assumes)))
    known = _content(text)
    for name, control in claim.controls.items():
        fields = control.breach if isinstance(control.breach, Mapping) else ()
        if control.breaks and control.breaks.lower() not in " ".join(text.lower().split()):
            yield Finding(name, f"control {name!r} breaks {control.breaks!r}, which the claim does not say")
        elif not (control.breaks or known & (_content(name) | {part for f in fields for part in (f[:STEM], field_symbol(f))})):
            yield Finding(name, f"control {name!r} names no words of the claim, and no assumption, that it breaks (breaks)")


def _content(text: str) -> set[str]:
    """The stems of the longer words of a text, and the letters of its formulas."""
    words = re.findall(r"[a-z]{4,}", MATH.sub(" ", text.lower()))
    letters = (one for math in MATH.findall(text) for one in re.findall(r"\\[A-Za-z]+|[A-Za-z]", math))
    return {word[:STEM] for word in words if word not in COMMON} | {one for one in letters if one not in UPRIGHT}


def changed(grid: Grid, breach: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The fields that a control sets to values which the grid does not have, with all values that it sets."""
    other = grid.replace(**breach)
    values = {name: _values(other, name) for name in breach}
    return {name: new for name, new in values.items() if not {*map(_plain, new)} <= {*map(_plain, _values(grid, name))}}


def inside(claim: Claim, field: str, values: Sequence[Any]) -> bool:
    """Whether all values of a field lie in its stated domain: the span of its swept numbers, or what the claim holds for."""
    if not all(_is_number(v) for v in values):
        return False
    spans = [claim.holds[field]] if field in claim.holds else []
    if own := [v for v in claim.quick.axes.get(field, ()) if _is_number(v)]:
        spans.append((min(own), max(own)))
    return any(all(low <= v <= high for v in values) for low, high in spans)


def _where(claim: Claim, fields: Mapping[str, Sequence[Any]]) -> str:
    if not fields:
        return "it changes no field"
    spans = {name: claim.quick.axes.get(name) or claim.holds[name] for name in fields}
    return ", ".join(
        f"{n}={' and '.join(map(_short, v))} in {_short(min(spans[n]))} to {_short(max(spans[n]))}" for n, v in fields.items()
    )


def _values(grid: Grid, name: str) -> tuple[Any, ...]:
    return grid.axes[name] if name in grid.axes else (getattr(grid.base, name),)


def _plain(value: Any) -> Any:
    """A value that equal settings have in common: a switch's name, a number whatever its type."""
    return value if isinstance(value, bool | int | float | tuple | None) else str(value)


def _short(value: Any) -> str:
    return f"{value:g}" if _is_number(value) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# checks and readings


def _off(claim: Claim) -> set[str]:
    """Names of the rivals that are the mechanism switched off."""
    return {name for name, rival in claim.rivals.items() if isinstance(rival, Off)}


def _names(case: Case) -> list[str]:
    return [one.name for one in (case.result.readings if case.measured else case.result.checks)]


def _outcomes(case: Case) -> list[Outcome]:
    return [*case.result.controls, *case.result.rivals]


def _rejecting(case: Case, name: str) -> list[Outcome]:
    """The opponents that a check rejects, or from which a reading is told apart, the mechanism switched off among them."""
    if not case.measured:
        return [o for o in _outcomes(case) if any(c.name == name and c.passed is False for c in o.checks)]
    return [o for o in _outcomes(case) if name in o.apart and not _agrees(case, name, o)]


def _agrees(case: Case, name: str, outcome: Outcome) -> bool:
    """Whether an opponent's reading agrees with the record, as a repetition of the claim's own runs would."""
    record = (case.claim.recorded or {}).get(name)
    theirs = next((r for r in outcome.readings if r.name == name), None)
    return record is not None and theirs is not None and agreement.differs(theirs, record, _ratio(case)) is None


def _ratio(case: Case) -> float:
    """Seeds of the record over seeds of these runs."""
    seeds = len(case.result.task.main.seeds)
    return (case.claim.recorded_seeds or case.claim.seeds) / seeds


def _asked(case: Case) -> bool:
    """Whether each reading needs an opponent: those of networks and flows do, and of claims that have opponents."""
    return not case.measured or case.claim.evidence in TRAINED or bool(_outcomes(case))


def _blunt(case: Case) -> Iterator[Finding]:
    """Checks and readings that reject nothing but the mechanism switched off."""
    off = _off(case.claim)
    for name in _names(case) if _asked(case) else ():
        rejected = [o.name for o in _rejecting(case, name)]
        if any(o not in off for o in rejected):
            continue
        what = f"reading {name!r} is told apart from" if case.measured else f"check {name!r} rejects"
        but = f" but the mechanism switched off ({', '.join(map(repr, rejected))})" if rejected else ""
        yield Finding(name, f"{what} no control and no rival{but}")


def _told_apart_from_nothing(case: Case) -> Iterator[Finding]:
    """A measured claim on a network or a flow without the mechanism switched off among its rivals."""
    claim = case.claim
    if case.measured and claim.evidence in TRAINED and not _off(claim):
        yield Finding("nothing", "not told apart from nothing: no rival is the mechanism switched off (jd.off)")


def _like_nothing(case: Case) -> list[str]:
    """The readings for which the mechanism switched off says a number that does not differ."""
    off = _off(case.claim)
    spoken = {r.name for o in case.result.rivals if o.name in off for r in o.readings}
    return [name for name in _names(case) if name in spoken and not any(o.name in off for o in _rejecting(case, name))]


# margins


def _margins(case: Case) -> dict[str, dict[str, Any]]:
    """For each check or reading the nearest opponent that it rejects, the mechanism switched off aside, and its margin."""
    off, found = _off(case.claim), {}
    own = {one.name: one for one in answers(case.result)}
    for name in _names(case):
        rejected = [o for o in _rejecting(case, name) if o.name not in off]
        margins = {o.name: _margin(case, own[name], o) for o in rejected}
        if margins:
            nearest = min(margins, key=lambda n: _or_infinite(margins[n]))
            found[name] = {"opponent": nearest, "margin": margins[nearest]}
    return found


def _margin(case: Case, own: Check | Reading, outcome: Outcome) -> float | None:
    """How far an opponent lies beyond the bound, over the own value's distance from it; None where that is zero or no number."""
    theirs = next(one for one in answers(outcome) if one.name == own.name)
    low, high = own.bound if isinstance(own, Check) else _agreeing(case, own)
    beyond, room = (theirs.value - high, high - own.value) if theirs.value > high else (low - theirs.value, own.value - low)
    return beyond / room if room > 0 and math.isfinite(room) and math.isfinite(beyond) else None


def _or_infinite(margin: float | None) -> float:
    return math.inf if margin is None else margin


def _agreeing(case: Case, own: Reading) -> tuple[float, float]:
    """The interval in which a reading agrees with its record, or its own."""
    record = (case.claim.recorded or {}).get(own.name)
    return own.ends if record is None else agreement.predicted(record, _ratio(case))


OPPONENTS = Attack("opponents", "Does each check reject more than nothing, and is each control outside of what is stated?", ask)
