"""``jd.referee``: every attack on a claim, within five times what the claim itself costs."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxdyn.attacks.answer import Answer, excused, not_applicable, not_asked, with_idle
from jaxdyn.attacks.case import Attack, Case
from jaxdyn.attacks.listed import ATTACKS
from jaxdyn.attacks.recorded import what_was_asked
from jaxdyn.engine.base.failure import Failure, let_through
from jaxdyn.engine.base.jsonable import finite
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.storage import store as storage
from jaxdyn.engine.verification.result import Result
from jaxdyn.engine.verification.task import Task
from jaxdyn.engine.verification.verify import make_tasks, plan_tasks, run_plan, task_costs
from jaxdyn.errors import UsageError
from jaxdyn.wording import plural

__all__ = ["Report", "referee", "refereed"]

SHARE = 5.0  # seconds of costly attacks, in multiples of the claim's own
DEBUG = "JAXDYN_REFEREE_DEBUG"  # a variable with which an attack that fails raises
LEAST = 10.0  # seconds that costly attacks may take on a claim that costs next to nothing
JUDGED = ("upheld", "refuted", "measured")


@dataclasses.dataclass(frozen=True)
class Report:
    """What the referee found in one claim."""

    claim: Claim
    answers: Mapping[str, Answer]

    @property
    def findings(self) -> int:
        """Number of open findings."""
        return sum(len(answer.open) for answer in self.answers.values())

    def to_json(self) -> dict[str, Any]:
        """The claim's entry of ``jaxdyn referee --json``; ``asked`` is a hash of what the claim says and how it is judged."""
        attacks = [{"name": name, **dataclasses.asdict(answer)} for name, answer in self.answers.items()]
        return dict(finite({"id": self.claim.id, "asked": what_was_asked(self.claim), "attacks": attacks}))

    def __repr__(self) -> str:
        lines = [f"{self.claim.id}: {plural(self.findings, 'open finding')}"]
        for name, answer in self.answers.items():
            lines.append(f"  {name}: {answer.outcome}. {answer.detail}")
            lines += [f"    - {f.text}" + (f" Excused: {f.excuse}" if f.excuse else "") for f in answer.findings]
        return "\n".join(lines)


def referee(claim: str | Claim, *, quick: bool = False, out: str | Path | None = None, load: Sequence[str | Path] = ()) -> Report:
    """Ask of a claim what a hostile referee would ask.

    ``jd.referee("theory.claim")``, ``jd.referee(my_claim, quick=True)``

    Args:
        claim: an id, or a ``Claim`` of your own.
        quick: ask only what needs no new runs.
        out: folder for the runs' shards; None keeps nothing.
        load: files with claims of your own.

    Returns:
        ``.answers`` by the attack's name, ``.findings`` (the number of open ones), ``.to_json()``.

    Raises:
        UsageError: the claim is unknown, or an excuse names no attack.
    """
    registry.check_claim(claim)
    if isinstance(claim, str):
        matches = registry.select([claim], load)
        if len(matches) != 1:
            raise UsageError(f"{claim!r} matches {plural(len(matches), 'claim')}; jd.referee takes one")
        claim = matches[0]
    folder = contextlib.nullcontext(None) if out is None else storage.open_folder(out, "verify")
    with folder as store:
        return refereed(claim, quick=quick, store=store, load=load)


def refereed(claim: Claim, *, quick: bool, store: Path | None, load: Sequence[str | Path] = ()) -> Report:
    """The report on a claim; arguments and errors as for :func:`referee`, with an open folder."""

    def run(tasks: Sequence[Task]) -> list[Result]:
        return run_plan(plan_tasks(list(tasks), scale="quick", store=store), None)

    task = make_tasks([claim], load=load)[0]
    result = run([task])[0]
    own = sum(task_costs([task]).values())  # now that its programs have been timed
    if result.data is None or result.verdict not in JUDGED:
        why = f"its own runs are {result.verdict}" + (f": {result.message}" if result.message else "")
        return Report(claim, {attack.name: not_applicable(why) for attack in ATTACKS})
    case = Case(claim, result, run, max(LEAST, SHARE * own), quick)
    return Report(claim, with_idle({attack.name: _asked(attack, case) for attack in ATTACKS}, claim.excused))


def _asked(attack: Attack, case: Case) -> Answer:
    """The answer of one attack; an exception is no answer, and says so."""
    if attack.costly and case.quick:
        return not_asked("it makes new runs")
    try:
        return excused(attack.ask(case), attack.name, case.claim.excused)
    except BaseException as error:
        let_through(error)
        if os.environ.get(DEBUG):
            raise
        return not_asked(f"the attack failed: {Failure.of(error)}")
