"""A network that does not learn, and a treatment at its least: nothing may be upheld, and no reading may agree with its record.

Updates are zero while all steps are made (:func:`jaxdyn.train.learning`): a rate of zero could change the number of steps. A claim
that holds then says nothing about training, unless its statement is that something is conserved (``invariant=True``). A printed
form that is refuted by what trained networks do is not refuted by their start, where the right form holds.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import xarray as xr

from jaxdyn import train
from jaxdyn.attacks.answer import Answer, Finding, answered, not_applicable, not_asked
from jaxdyn.attacks.case import Attack, Case
from jaxdyn.attacks.runs import Judged, judge, make, own_seconds, short_of, task_of
from jaxdyn.engine.base.failure import let_through
from jaxdyn.engine.base.reference import ref_to
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.grid import Grid
from jaxdyn.engine.claims.observables import Observables
from jaxdyn.engine.claims.ranges import roles_of
from jaxdyn.engine.judging import agreement
from jaxdyn.engine.judging.check import Check
from jaxdyn.engine.judging.resolution import judged
from jaxdyn.engine.programs.chunk import Program
from jaxdyn.engine.programs.tracing import trace
from jaxdyn.engine.runs.preparing import within
from jaxdyn.errors import UsageError

__all__ = ["LEARNING", "frozen"]

NAME, LEARNS = "no learning", "learning"
ASKED = ("network", "reduced", "algebra")  # kinds of evidence: what is read of a flow, or of a model as published, is not trained
RECORDS = ("record", "step", "time", "epoch", "save")  # axes along which a network is trained
TIMES, LEAST = 20.0, 60.0  # the longest that untrained runs may take, in multiples of the claim's own, and seconds


def frozen(trial: Callable[..., Observables]) -> Callable[..., Observables]:
    """The trial, in which no step changes the weights; the engine knows it in this process, under a name of its own."""

    @functools.wraps(trial)
    def still(setting: Any, key: jax.Array, *shared: Any) -> Observables:
        with train.learning(0.0):
            return trial(setting, key, *shared)

    still.__qualname__ = f"{trial.__qualname__} that does not learn"
    ref_to(still)
    return still


def ask(case: Case) -> Answer:
    """Whether the claim holds of a network that does not learn, or without its treatment."""
    if case.claim.evidence not in ASKED:
        return not_applicable(f"its evidence is a {case.claim.evidence}: nothing that it reads is trained")
    if case.claim.invariant:
        return not_applicable("its statement says that something is conserved")
    if case.measured and not case.claim.recorded:
        return not_applicable("nothing was recorded yet with which readings could agree")
    asked, left_out, findings = dict[str, str](), list[str](), list(_at_start(case))
    seconds = own_seconds(case)
    for subject, what, attempt in _attempts(case):
        if seconds > case.time.left:
            left_out.append(what)
            continue
        judged = attempt(seconds)
        asked[what] = judged.verdict
        findings += _findings(case, judged, what, subject)
    if not asked and not findings:
        why = "its training does not go through jaxdyn.train"
        return not_asked(short_of(case, seconds), left_out=left_out) if left_out else not_applicable(why)
    detail = "; ".join(f"with {what} the claim's runs are {verdict}" for what, verdict in asked.items())
    return answered(detail, findings, asked=asked, left_out=left_out)


def _attempts(case: Case) -> list[tuple[str, str, Callable[[float], Judged]]]:
    """What is asked of a claim: the subject of a finding, the runs in words, and the function that judges them."""
    attempts: list[tuple[str, str, Callable[[float], Judged]]] = []
    if trains(case.result.task.main.programs.values()):
        attempts.append((LEARNS, "a network that does not learn", functools.partial(_without_learning, case)))
    for name, least in treatments(case.claim.quick).items():
        attempts.append((name, f"{name} at {least:g}", functools.partial(_without_treatment, case, name, least)))
    return attempts


def trains(programs: Iterable[Program]) -> bool:
    """Whether one of some programs makes steps of training that :func:`jaxdyn.train.learning` acts on."""
    for program in programs:
        with train.learning(0.0) as made:
            trace(program)
        if made.steps:
            return True
    return False


def _without_learning(case: Case, seconds: float) -> Judged:
    task = task_of(case, trial=frozen(case.claim.trial))
    try:
        (data,) = within(max(LEAST, TIMES * seconds), make, case, [task], seconds)
    except TimeoutError as late:  # training that waits for a condition never ends
        return Judged("undecided", str(late))
    return judge_formed(case.claim, data)


def treatments(grid: Grid) -> dict[str, float]:
    """The least value of every treatment that is not at its least everywhere: the lower end of its range, or 0."""
    found = {}
    for name in (name for name, role in roles_of(grid.setting).items() if role == "treatment"):
        bounds = grid.setting.ranges[name].as_dict() if name in grid.setting.ranges else {}
        least = bounds.get("at_least", bounds.get("above", 0.0))
        if any(value != least for value in _values(grid, name)):
            found[name] = float(least)
    return found


def _values(grid: Grid, name: str) -> Sequence[float]:
    return grid.axes[name] if name in grid.axes else (getattr(grid.base, name),)


def _without_treatment(case: Case, name: str, least: float, seconds: float) -> Judged:
    """Runs without the treatment, which the judge takes for those with it."""
    try:
        task = task_of(case, {name: least})
    except UsageError as refused:  # the least value is not allowed
        return Judged("undecided", str(refused))
    (data,) = make(case, [task], seconds)
    axes = case.claim.quick.axes
    if data is not None and name in axes:
        data = data.isel({name: 0}, drop=True).expand_dims({name: list(axes[name])}).transpose(*axes, "seed", ...)
    return judge_formed(case.claim, data)


def judge_formed(claim: Claim, data: xr.Dataset | None) -> Judged:
    """The judge's word on some runs; of a claim that a form is wrong, on the form that is right."""
    if claim.counterpart is not None:
        claim = dataclasses.replace(claim, form=claim.counterpart)
    return judge(claim, data)


def _at_start(case: Case) -> Iterator[Finding]:
    """A form that fails at the first record alone, where its counterpart passes: no step of training has been made."""
    claim = case.claim
    if claim.evidence != "network" or claim.expected != "refuted" or claim.counterpart is None:
        return
    right = dataclasses.replace(case, claim=dataclasses.replace(claim, form=claim.counterpart))
    for axis in (axis for axis in RECORDS if axis in case.main.sizes and case.main.sizes[axis] > 1):
        wrong, passed = (_checks_at_first(one, axis) for one in (case, right))
        failing = [check for check in wrong if check.passed is False and check.name in {c.name for c in passed if c.passed}]
        if failing:
            yield Finding("start", f"it is refuted at the first {axis} alone, before any step: {'; '.join(map(str, failing))}")


def _checks_at_first(case: Case, axis: str) -> list[Check]:
    """The checks on the first record of all runs; none if the judge needs more."""
    try:
        return judged(case.claim.judge, case.main.isel({axis: slice(0, 1)}), narrowed=True, opponent=True)
    except BaseException as error:
        let_through(error)
        return []


def _findings(case: Case, judged: Judged, what: str, subject: str) -> list[Finding]:
    """The findings in what the judge says: the claim is upheld, or readings agree with their records."""
    if judged.verdict == "upheld":
        return [Finding(subject, f"it is upheld with {what}: {judged.why}")]
    if judged.verdict != "measured":
        return []
    records = case.claim.recorded or {}
    ratio = (case.claim.recorded_seeds or case.claim.seeds) / len(case.result.task.main.seeds)
    agree = [r for r in judged.readings if r.name in records and agreement.differs(r, records[r.name], ratio) is None]
    text = f"with {what} a reading agrees with its record"
    return [Finding(r.name if subject == LEARNS else f"{subject}, {r.name}", f"{text}: {r}") for r in agree]


LEARNING = Attack(NAME, "Does the claim hold of a network that does not learn, or without its treatment?", ask, costly=True)
