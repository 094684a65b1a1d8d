"""From labelled data to a verdict: judge the main runs, every control and rival, and measure the judge's resolution.

Knows no theory and runs nothing: everything here is a function of Datasets.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxdyn.engine.base.failure import let_mistakes_through, let_through
from jaxdyn.engine.claims.claim import Claim, Control, Rival
from jaxdyn.engine.claims.edits import Off
from jaxdyn.engine.judging.check import Check, all_passed, holds
from jaxdyn.engine.judging.decision import Decision, Outcome, Terms, error_decision, teeth, unmet, with_place
from jaxdyn.engine.judging.doubts import counting_unjudged, located, settled
from jaxdyn.engine.judging.estimate import Look, python_value, spent
from jaxdyn.engine.judging.judged_runs import ok_runs, outside, select_form, why_not_judged
from jaxdyn.engine.judging.opponents import about, answers_on_edit, control_runs, failed_control, rival_numbers, rival_runs
from jaxdyn.engine.judging.readings import decide_measured, settled_readings
from jaxdyn.engine.judging.resolution import (
    blend,
    first_seeds,
    judged,
    rejects,
    same_seeds,
    scale,
    seeds_distorted,
    smallest,
    why_not_blended,
)
from jaxdyn.errors import Inconclusive
from jaxdyn.status import OK

__all__ = ["by_cells", "decide", "judge_cell", "with_silent_rivals"]

USUAL = Terms()


def decide(claim: Claim, data: xr.Dataset, control_data: dict[str, xr.Dataset], terms: Terms = USUAL) -> Decision:
    """Judge a claim.

    Args:
        claim: the claim.
        data: its runs.
        control_data: the runs of every control that is a setting; controls that are functions act on ``data``.
        terms: the circumstances in which they are judged.

    Returns:
        The decision; an exception of the judge gives the verdict ``error``.
    """
    diverged = int((data.status != OK).sum())
    if not terms.recorded:
        claim = dataclasses.replace(claim, recorded=None, recorded_seeds=None)
    looking = claim if claim.expected == "measured" else dataclasses.replace(claim, judge=Look(claim.judge, spent(terms.look)))
    try:
        count = int(outside(claim, data).sum())
        decision = _decide(looking, data, control_data, terms)
        return dataclasses.replace(decision, diverged=diverged, outside=count)
    except BaseException as error:
        let_through(error)
        return dataclasses.replace(error_decision(error, getattr(error, "author", None) or claim.judge), diverged=diverged)


def _decide(claim: Claim, data: xr.Dataset, control_data: dict[str, xr.Dataset], terms: Terms) -> Decision:
    if (why := why_not_judged(claim, data)) is not None:
        return Decision("inconclusive", message=why)
    whole = ok_runs(data, outside(claim, data))
    main = select_form(whole, claim.form)
    try:
        if claim.expected == "measured":
            return decide_measured(claim, main, control_data, terms)
        return _checked(claim, whole, main, control_data, terms.narrowed)
    except Inconclusive as reason:
        return Decision("inconclusive", message=str(reason))


# claims with checks


def _checked(claim: Claim, whole: xr.Dataset, main: xr.Dataset, control_data: dict[str, xr.Dataset], narrowed: bool) -> Decision:
    """The decision on a claim to be upheld or refuted."""
    # checks and gates of the main runs
    everything = _settled(claim, main, narrowed)
    if claim.expected == "upheld":
        everything = located(everything, lambda other: judged(claim.judge, other, narrowed=True), main)
    checks, gates = [c for c in everything if not c.gate], [c for c in everything if c.gate]
    decision = Decision("upheld", checks, gates=gates)
    if (why := unmet(gates)) is not None:
        return dataclasses.replace(decision, verdict="inconclusive", message=why)
    passed = all_passed(checks)
    # for a claim to be refuted, the counterpart on the same data
    if claim.expected == "refuted":
        try:
            counterpart = _settled(claim, select_form(whole, claim.counterpart), narrowed)
        except Inconclusive as reason:
            return dataclasses.replace(decision, verdict="inconclusive", message=f"counterpart: {reason}")
        decision = dataclasses.replace(decision, counterpart_checks=[c for c in counterpart if not c.gate])
        if passed is False and all_passed(counterpart) is not True:
            message = f"the same judge does not uphold the counterpart ({claim.counterpart}) on the same data"
            return dataclasses.replace(decision, verdict="inconclusive", message=message)
    # controls, rivals, and the resolution
    controls, mixes = [], {}
    distorted = seeds_distorted(claim.judge, main) if passed else None
    for name, control in claim.controls.items():
        with about(claim, "control", name):
            runs = control_runs(name, control, claim, main, control_data)
            outcome, mixes[name] = _judge_control(name, control, claim, main, runs, passed is True, distorted)
        controls.append(outcome)
    rivals = [_judge_rival(name, rival, claim, main, checks, narrowed) for name, rival in claim.rivals.items()]
    scales = scale(claim.judge, first_seeds(main, distorted)) if passed else {}
    decision = dataclasses.replace(decision, controls=controls, rivals=rivals)
    # the verdict
    verdict, why = _verdict(passed, decision, [*scales.values(), *mixes.values()])
    shown: dict[str, Any] = {name: {k: v or None for k, v in part.items()} for name, part in (("scale", scales), ("mix", mixes))}
    if distorted is not None:
        shown["seeds"] = distorted
    return dataclasses.replace(decision, verdict=verdict, message=why, resolution=shown)


def _settled(claim: Claim, ds: xr.Dataset, narrowed: bool) -> list[Check]:
    """The judge's checks of the claim's own runs; undecided where they rest on undefined numbers."""
    return settled(judged(claim.judge, ds, narrowed=narrowed), lambda other: judged(claim.judge, other, narrowed=True), ds)


def _verdict(passed: bool | None, decision: Decision, thresholds: Sequence[float | None]) -> tuple[str, str | None]:
    """The verdict and, if it needs one, its reason."""
    if passed is None:
        return "inconclusive", f"undecided: {'; '.join(with_place(c) for c in decision.checks if c.passed is None)}"
    if not passed:
        return "refuted", None
    blind = _toothless(decision, thresholds)
    return ("upheld", None) if blind is None else ("toothless", blind)


def _toothless(decision: Decision, thresholds: Sequence[float | None]) -> str | None:
    """Why a claim is toothless: an opponent passes, a check rejects none, or no resolution is finite; None if it is not."""
    opponents = [*decision.controls, *decision.rivals]
    if accepted := [o.name for o in opponents if not o.rejected]:
        return f"not rejected by any check: {', '.join(accepted)}"
    if harmless := [name for name, rejected in teeth(decision.checks, opponents).items() if not rejected]:
        return f"rejects no control and no rival: {', '.join(harmless)}"
    if not opponents or not any(v is not None and math.isfinite(v) for v in thresholds):
        return "no distortion of the prediction and no share of a control is rejected: the resolution is not finite"
    return None


# controls and rivals


def _judge_control(
    name: str, control: Control, claim: Claim, main: xr.Dataset, data: xr.Dataset, upheld: bool, distorted: int | None
) -> tuple[Outcome, Any]:
    """The control's outcome, and its *mix*: the smallest rejected share of its data in the main data."""
    if (ended := failed_control(name, control, data)) is not None:
        return ended, None
    good = ok_runs(data)
    try:
        checks = answers_on_edit(f"control {name!r}", control.breach, main, good, lambda: _opponents_checks(claim, good))
    except Inconclusive as reason:
        return Outcome(name, False, [], str(reason)), None
    if counting := counting_unjudged(checks, lambda ds: _opponents_checks(claim, ds), good):
        checks = [dataclasses.replace(c, passed=None) if c.name in counting else c for c in checks]
    outcome = Outcome(name, all_passed(checks) is False, checks)
    good = first_seeds(good, distorted)
    main = same_seeds(first_seeds(main, distorted), good)
    why = why_not_blended(main, good)
    if why is not None or not outcome.rejected or not upheld:
        return dataclasses.replace(outcome, reason=None if why is None else f"not blended: {why}"), None
    return outcome, smallest(lambda share: rejects(claim.judge, blend(main, good, share)))


def _opponents_checks(claim: Claim, ds: xr.Dataset) -> list[Check]:
    """The judge's checks of an opponent's runs, gates aside."""
    return [c for c in judged(claim.judge, ds, opponent=True) if not c.gate]


def _judge_rival(name: str, rival: Rival, claim: Claim, main: xr.Dataset, own: Sequence[Check], narrowed: bool = False) -> Outcome:
    with about(claim, "rival", name):
        return _rival_outcome(name, rival, claim, main, own, narrowed)


def _rival_outcome(name: str, rival: Rival, claim: Claim, main: xr.Dataset, own: Sequence[Check], narrowed: bool) -> Outcome:
    theory = rival.rival if isinstance(rival, Off) else rival
    if isinstance(theory, Mapping):
        try:
            numbers = rival_numbers(name, theory, main, [c.name for c in own], narrowed)
        except Inconclusive as reason:
            return Outcome(name, False, reason=str(reason))
        bounds = {c.name: c.bound for c in own}
        checks = [Check(check, number, bounds[check], holds(bounds[check], number)) for check, number in numbers.items()]
        return Outcome(name, all_passed(checks) is False, checks)
    ds = rival_runs(name, theory, main)
    try:
        checks = answers_on_edit(f"rival {name!r}", theory, main, ds, lambda: _opponents_checks(claim, ds))
    except Inconclusive as reason:
        return Outcome(name, False, [], str(reason))
    return Outcome(name, all_passed(checks) is False, checks)


def by_cells(claim: Claim, data: xr.Dataset, fields: list[str]) -> list[dict[str, Any]]:
    """Judge each cell of the named fields separately: a map of where a claim holds."""
    sizes = [data.sizes[f] for f in fields]
    parts = (data.isel({f: [i] for f, i in zip(fields, index, strict=True)}) for index in np.ndindex(*sizes))
    return [{"at": {f: python_value(part[f].values[0]) for f in fields}, **judge_cell(claim, part)} for part in parts]


def judge_cell(claim: Claim, part: xr.Dataset, *, rivals: bool = True) -> dict[str, Any]:
    """The verdict of one cell, without controls; ``failed``: checks that fail, rivals that pass, or why it is not judged.

    If all checks pass, the ``rivals`` are asked; one that is not rejected, if undecided, makes the cell toothless, as
    it makes a claim. ``unasked``: those that need other cells or more runs than this one has, with what they raised.
    A cell in which none of the rivals could be asked is inconclusive. ``left_out``, if any of its runs are not judged: how many
    have ``diverged`` and how many are ``outside`` the assumptions, ``of`` how many.
    """
    try:
        lost = _left_out(claim, part)
    except BaseException as error:
        let_through(error)
        return {"verdict": "error", "failed": error_decision(error, claim.judge).message}
    return _judged_cell(claim, part, rivals) | ({"left_out": lost} if lost else {})


def _left_out(claim: Claim, part: xr.Dataset) -> dict[str, int]:
    """How many runs of a cell are not judged, and why; empty if all are."""
    diverged, beyond = int((part.status != OK).sum()), int(outside(claim, part).sum())
    return {"of": part.status.size, "diverged": diverged, "outside": beyond} if diverged or beyond else {}


def _judged_cell(claim: Claim, part: xr.Dataset, rivals: bool) -> dict[str, Any]:
    """:func:`judge_cell` without the runs that are left out."""
    # answers of the judge
    measured = claim.expected == "measured"
    try:
        if (why := why_not_judged(claim, part)) is not None:
            return {"verdict": "inconclusive", "failed": why}
        main = select_form(ok_runs(part, outside(claim, part)), claim.form)
        if measured:
            checks, readings = settled_readings(claim, main, narrowed=True)
        else:
            checks, readings = _settled(claim, main, True), []
    except Inconclusive as reason:
        return {"verdict": "inconclusive", "failed": str(reason)}
    except BaseException as error:
        let_through(error)
        return {"verdict": "error", "failed": error_decision(error, claim.judge).message}
    # verdict by gates, checks, then rivals
    seen = [dataclasses.asdict(c) for c in checks] + [dataclasses.asdict(r) for r in readings]
    if closed := [c.name for c in checks if c.gate and not c.passed]:
        return {"verdict": "inconclusive", "failed": f"gate not met: {'; '.join(closed)}", "checks": seen}
    if measured:
        return {"verdict": "measured", "failed": None, "checks": seen}
    if all_passed(checks):
        return {**(_by_rivals(claim, main, checks) if rivals else {"verdict": "upheld", "failed": None}), "checks": seen}
    verdict = "refuted" if all_passed(checks) is False else "inconclusive"
    return {"verdict": verdict, "failed": "; ".join(c.name for c in checks if not c.passed) or None, "checks": seen}


def _by_rivals(claim: Claim, cell: xr.Dataset, checks: Sequence[Check]) -> dict[str, Any]:
    """The verdict of a cell in which all checks pass, by its rivals."""
    unasked: dict[str, str] = {}
    try:
        for name, rival in claim.rivals.items():
            if (why := _why_unasked(name, rival, cell, checks)) is not None:
                unasked[name] = why
        asked = {name: rival for name, rival in claim.rivals.items() if name not in unasked}
        outcomes = [_judge_rival(name, rival, claim, cell, checks, narrowed=True) for name, rival in asked.items()]
    except BaseException as error:
        let_through(error)
        return {"verdict": "error", "failed": error_decision(error, getattr(error, "author", None) or claim.judge).message}
    unasked |= {o.name: o.reason for o in outcomes if o.reason is not None}
    asked = {name: rival for name, rival in asked.items() if name not in unasked}
    if alike := [o.name for o in outcomes if not (o.rejected or o.name in unasked)]:
        return {"verdict": "toothless", "failed": f"not rejected: {', '.join(alike)}", "unasked": unasked}
    if unasked and not asked:
        why = f"no rival can be asked in this cell: {'; '.join(f'{name} ({why})' for name, why in unasked.items())}"
        return {"verdict": "inconclusive", "failed": why, "unasked": unasked}
    return {"verdict": "upheld", "failed": None, "unasked": unasked}


def _why_unasked(name: str, rival: Rival, cell: xr.Dataset, checks: Sequence[Check]) -> str | None:
    """What a rival raises that other cells could cure: a value or a place that this one lacks, or too few values."""
    theory = rival.rival if isinstance(rival, Off) else rival
    try:
        if isinstance(theory, Mapping):
            rival_numbers(name, theory, cell, [c.name for c in checks], narrowed=True)
        else:
            rival_runs(name, theory, cell)
    except Inconclusive as reason:
        return str(reason)
    except (LookupError, ValueError) as error:  # anything else is a fault of the rival's code
        let_mistakes_through(error)
        return error_decision(error, getattr(error, "author", None) or (theory if callable(theory) else None)).message
    return None


def with_silent_rivals(cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cells of a map; those that asked for a rival that raised in all of them are errors: no missing cell explains that."""
    asked = [cell for cell in cells if "unasked" in cell]
    silent = [name for name in (asked[0]["unasked"] if asked else ()) if all(name in cell["unasked"] for cell in asked)]
    if not silent:
        return list(cells)
    return [
        cell | {"verdict": "error", "failed": f"rival {silent[0]!r}, as in every cell: {cell['unasked'][silent[0]]}"}
        if "unasked" in cell
        else cell
        for cell in cells
    ]
