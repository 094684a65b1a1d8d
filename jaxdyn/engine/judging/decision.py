"""The decision on a claim, the outcomes of its controls and rivals, and which check rejects which of them.

Workers return decisions, and output folders store them. With its data a decision becomes a
:class:`jaxdyn.engine.verification.result.Result`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxdyn.engine.base.failure import Failure
from jaxdyn.engine.judging.check import Check, Reading
from jaxdyn.errors import Absent
from jaxdyn.wording import place

__all__ = ["RULES", "Decision", "Outcome", "Terms", "decision_from", "error_decision", "teeth", "unmet", "with_place"]

RULES = 1  # of the engine by which runs are judged: raised when the same runs give another number, as a test holds that they do not


@dataclasses.dataclass(frozen=True)
class Terms:
    """The circumstances in which runs are judged.

    Args:
        narrowed: the caller overrode fields of the claim's grid or chose fewer seeds, so that the judge may lack values.
        recorded: whether a measured claim's values were recorded on the same grid, so that they can be compared.
        look: 1 for the first judgement; each further one comes after seeds were added (see
            :class:`jaxdyn.engine.judging.estimate.Look`).
        seeds: number of seeds of these runs, and of the claim; None: they are equal.
    """

    narrowed: bool = False
    recorded: bool = True
    look: int = 1
    seeds: tuple[int, int] | None = None


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The judge's checks, or readings, on one control or rival; ``reason``: why it was not judged or not decided.

    ``apart``: names of the readings that differ from those of the claim's own runs.
    """

    name: str
    rejected: bool
    checks: list[Check] = dataclasses.field(default_factory=list)
    reason: str | None = None
    readings: list[Reading] = dataclasses.field(default_factory=list)
    apart: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Decision:
    """A verdict and its evidence.

    Args:
        verdict: one of upheld, refuted, toothless, inconclusive, measured, error, skipped.
        checks: the judge's checks on the main runs.
        readings: the readings of a measured claim's main runs.
        gates: the conditions that the runs must meet before the statement is judged.
        controls: the outcome of every negative control.
        rivals: the outcome of every rival.
        resolution: the smallest distortions that are rejected, of predictions (``scale``) and by a control's data (``mix``); and
            the number of distorted ``seeds``, if not all.
        counterpart_checks: the same judge's checks of the counterpart's form, for a claim expected to be refuted.
        diverged: number of runs that are not ok.
        outside: number of runs outside the claim's assumptions.
        message: the reason for the verdict, if it needs one.
        failure: the exception behind the verdict ``error``.
        by: the verdict in each cell of the fields in ``by``.
        figure: the claim's figure as HTML, if it was drawn.
    """

    verdict: str
    checks: list[Check] = dataclasses.field(default_factory=list)
    readings: list[Reading] = dataclasses.field(default_factory=list)
    gates: list[Check] = dataclasses.field(default_factory=list)
    controls: list[Outcome] = dataclasses.field(default_factory=list)
    rivals: list[Outcome] = dataclasses.field(default_factory=list)
    resolution: dict[str, Any] = dataclasses.field(default_factory=lambda: {"scale": {}, "mix": {}})
    counterpart_checks: list[Check] = dataclasses.field(default_factory=list)
    diverged: int = 0
    outside: int = 0
    message: str | None = None
    failure: Failure | None = None
    by: list[dict[str, Any]] | None = None
    figure: str | None = None

    @property
    def undecided(self) -> bool:
        """Whether more runs could decide a check, the counterpart's too, or, if the verdict is toothless, reject an opponent."""
        own, opponents = [c.passed for c in self.checks], [*self.controls, *self.rivals]
        if self.verdict == "inconclusive" and self.counterpart_checks and False in own:
            own = [c.passed for c in self.counterpart_checks]
        if self.verdict != "toothless":
            return None in own and False not in own
        harmless = {name for name, rejected in teeth(self.checks, opponents).items() if not rejected}
        return any(c.passed is None and (not o.rejected or c.name in harmless) for o in opponents for c in o.checks)


def teeth(checks: Sequence[Check], opponents: Sequence[Outcome]) -> dict[str, list[str]]:
    """For every check, the names of the controls and rivals on which it fails."""
    return {c.name: [o.name for o in opponents if any(d.name == c.name and d.passed is False for d in o.checks)] for c in checks}


def unmet(gates: Sequence[Check]) -> str | None:
    """A sentence that names the gates that are not met; None if all are."""
    failed = [c for c in gates if not c.passed]
    return f"gate not met: {'; '.join(map(with_place, failed))}" if failed else None


def with_place(check: Check) -> str:
    """A check as text, with the place of its worst entry, or of the run that has no number."""
    if not check.worst:
        return str(check)
    kind = "no number" if math.isnan(check.value) else "worst"
    return f"{check} ({kind} at {place(check.worst)})"


def decision_from(saved: Mapping[str, Any]) -> Decision:
    """A decision from its fields (:func:`dataclasses.asdict`) as read from JSON, without its failure.

    Raises:
        ValueError: the fields are not those of a decision.
    """
    try:
        outcomes = {k: [_outcome_from(o) for o in saved[k]] for k in ("controls", "rivals")}
        readings = {"readings": _readings_from(saved["readings"])}
        checks = {name: _checks_from(saved[name]) for name in ("checks", "gates", "counterpart_checks")}
        return Decision(**{**saved, **checks, **readings, **outcomes, "failure": None})
    except (TypeError, KeyError) as error:
        raise ValueError(f"no decision: {error}") from None


def _outcome_from(saved: dict[str, Any]) -> Outcome:
    return Outcome(**{**saved, "checks": _checks_from(saved["checks"]), "readings": _readings_from(saved["readings"])})


def _checks_from(saved: list[dict[str, Any]]) -> list[Check]:
    return [Check(**c) for c in saved]


def _readings_from(saved: list[dict[str, Any]]) -> list[Reading]:
    return [Reading(**r) for r in saved]


def error_decision(error: BaseException | Failure, author: Callable[..., Any] | None = None) -> Decision:
    """The decision when a trial or a judge raised; ``author`` is a function of the claim, to tell its files from libraries.

    ``error``, or ``skipped`` if the trial, when traced, needs something that is not on this machine.
    """
    failure = error if isinstance(error, Failure) else Failure.of(error, author)
    if isinstance(failure.error, Absent):
        return Decision("skipped", message=failure.message)
    return Decision("error", message=str(failure), failure=failure.text_only())
