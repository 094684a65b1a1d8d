"""The decision on a measured claim: its readings, their agreement with the record, and which opponents they reject."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr

from jaxdyn.engine.claims.claim import Claim, Rival
from jaxdyn.engine.claims.edits import Off
from jaxdyn.engine.judging import agreement
from jaxdyn.engine.judging.check import Check, Reading
from jaxdyn.engine.judging.decision import Decision, Outcome, Terms, unmet
from jaxdyn.engine.judging.doubts import settled
from jaxdyn.engine.judging.judged_runs import ok_runs
from jaxdyn.engine.judging.opponents import about, answers_on_edit, control_runs, failed_control, rival_numbers, rival_runs
from jaxdyn.engine.judging.resolution import read
from jaxdyn.errors import Inconclusive, UsageError

__all__ = ["decide_measured", "settled_readings"]


def decide_measured(claim: Claim, main: xr.Dataset, control_data: dict[str, xr.Dataset], terms: Terms) -> Decision:
    """The decision on a measured claim."""
    # gates and readings of the main runs
    gates, readings = settled_readings(claim, main, narrowed=terms.narrowed)
    decision = Decision("measured", readings=readings, gates=gates)
    if (why := unmet(gates)) is not None:
        return dataclasses.replace(decision, verdict="inconclusive", message=why)
    _check_recorded(claim, readings)
    # controls and rivals
    known = claim.recorded or {}
    controls = []
    for name, control in claim.controls.items():
        with about(claim, "control", name):
            ds = control_runs(name, control, claim, main, control_data)
            ended = failed_control(name, control, ds)
            controls.append(ended or _read_opponent(name, control.breach, claim, main, ok_runs(ds), readings))
    rivals = [_read_rival(name, rival, claim, main, readings, terms.narrowed) for name, rival in claim.rivals.items()]
    decision = dataclasses.replace(decision, controls=controls, rivals=rivals)
    # agreement with the record, then rejection of all opponents
    seeds, own = terms.seeds or (1, 1)
    recorded_seeds = own if claim.recorded_seeds is None or terms.seeds is None else claim.recorded_seeds
    if known and (few := agreement.too_few_to_agree(seeds, recorded_seeds)) is not None:
        return dataclasses.replace(decision, verdict="inconclusive", message=few)
    compared = [agreement.differs(r, known[r.name], recorded_seeds / seeds) for r in readings if r.name in known]
    if differ := [why for why in compared if why is not None]:
        return dataclasses.replace(decision, verdict="inconclusive", message=f"not what was recorded: {'; '.join(differ)}")
    if alike := [o.name for o in (*controls, *rivals) if not o.rejected]:
        return dataclasses.replace(decision, verdict="toothless", message=f"not told apart by any reading: {', '.join(alike)}")
    return decision


def settled_readings(claim: Claim, ds: xr.Dataset, *, narrowed: bool) -> tuple[list[Check], list[Reading]]:
    """The gates and readings of the claim's own runs; without a number where they rest on undefined ones."""

    def ask(other: xr.Dataset) -> list[Check | Reading]:
        gates, readings = read(claim.judge, other, narrowed=True)
        return [*gates, *readings]

    gates, readings = read(claim.judge, ds, narrowed=narrowed)
    answers: list[Check | Reading] = settled([*gates, *readings], ask, ds)
    return [a for a in answers if isinstance(a, Check)], [a for a in answers if isinstance(a, Reading)]


def _check_recorded(claim: Claim, readings: Sequence[Reading]) -> None:
    """Refuse records that do not match the readings.

    Raises:
        UsageError: values were recorded, but not for exactly these readings.
    """
    if claim.recorded is not None and (unlike := {r.name for r in readings} ^ claim.recorded.keys()):
        raise UsageError(
            f"{claim.id}: recorded= has each reading by its name; readings and records differ in {', '.join(sorted(unlike))}"
        )


def _read_opponent(
    name: str, edit: Any, claim: Claim, main: xr.Dataset, ds: xr.Dataset, readings: Sequence[Reading], what: str = "control"
) -> Outcome:
    """The readings of an opponent's runs, and which of them differ from the claim's own."""
    try:
        own = answers_on_edit(f"{what} {name!r}", edit, main, ds, lambda: read(claim.judge, ds, opponent=True)[1])
    except Inconclusive as reason:
        return Outcome(name, False, reason=str(reason))
    return _told_apart(name, claim, readings, own)


def _told_apart(name: str, claim: Claim, readings: Sequence[Reading], own: Sequence[Reading]) -> Outcome:
    theirs, known = {r.name: r for r in own}, claim.recorded or {}
    apart = [r.name for r in readings if r.name in theirs and agreement.apart(r, theirs[r.name], known.get(r.name))]
    return Outcome(name, bool(apart), readings=list(own), apart=apart)


def _read_rival(name: str, rival: Rival, claim: Claim, main: xr.Dataset, readings: Sequence[Reading], narrowed: bool) -> Outcome:
    with about(claim, "rival", name):
        return _rival_read(name, rival, claim, main, readings, narrowed)


def _rival_read(name: str, rival: Rival, claim: Claim, main: xr.Dataset, readings: Sequence[Reading], narrowed: bool) -> Outcome:
    theory = rival.rival if isinstance(rival, Off) else rival
    if isinstance(theory, Mapping):
        try:
            numbers = rival_numbers(name, theory, main, [r.name for r in readings], narrowed)
        except Inconclusive as reason:
            return Outcome(name, False, reason=str(reason))
        return _told_apart(name, claim, readings, [Reading(reading, number) for reading, number in numbers.items()])
    return _read_opponent(name, theory, claim, main, rival_runs(name, theory, main), readings, "rival")
