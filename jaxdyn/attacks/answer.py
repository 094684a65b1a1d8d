"""What an attack answers: noticed, a finding, or why it was not asked; and findings that a claim excuses."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from jaxdyn.errors import UsageError

__all__ = ["OUTCOMES", "Answer", "Finding", "Word", "answered", "excused", "not_applicable", "not_asked", "with_idle"]

Word: TypeAlias = Literal["noticed", "finding", "excused", "not applicable", "not asked"]
OUTCOMES: tuple[Word, ...] = ("noticed", "finding", "excused", "not applicable", "not asked")


@dataclasses.dataclass(frozen=True)
class Finding:
    """One fault that an attack found.

    Args:
        subject: what is at fault, in a word or a place of the source: a field, a check, a line.
        text: the fault in a sentence.
        excuse: the claim's own sentence on why it is none; empty for an open finding.
    """

    subject: str
    text: str
    excuse: str = ""


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of one attack on one claim.

    Args:
        outcome: ``noticed`` if the claim withstands it, ``finding`` if a fault is open, ``excused`` if all are excused, ``not
            applicable`` or ``not asked``.
        detail: what was asked and what came of it, in a sentence.
        findings: the faults, open or excused.
        facts: numbers behind the answer, in JSON types.
    """

    outcome: Word
    detail: str
    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def open(self) -> tuple[Finding, ...]:
        """The findings that the claim does not excuse."""
        return tuple(f for f in self.findings if not f.excuse)


def answered(detail: str, findings: Iterable[Finding] = (), **facts: Any) -> Answer:
    """The answer of an attack that was asked: a finding if there is one, else noticed."""
    found = tuple(findings)
    return Answer("finding" if found else "noticed", detail, found, facts)


def not_applicable(why: str, **facts: Any) -> Answer:
    """The answer of an attack that has nothing to ask of this claim."""
    return Answer("not applicable", why, (), facts)


def not_asked(why: str, **facts: Any) -> Answer:
    """The answer of an attack that was not asked, since it costs too much, say."""
    return Answer("not asked", why, (), facts)


def excused(answer: Answer, attack: str, excuses: Mapping[str, str]) -> Answer:
    """The answer, with the claim's excuses: by the attack's name, or by ``attack: subject``."""
    if not answer.findings:
        return answer
    found = tuple(
        dataclasses.replace(f, excuse=excuses.get(f"{attack}: {f.subject}", excuses.get(attack, ""))) for f in answer.findings
    )
    outcome: Word = "finding" if any(not f.excuse for f in found) else "excused"
    return dataclasses.replace(answer, outcome=outcome, findings=found)


def with_idle(answers: Mapping[str, Answer], excuses: Mapping[str, str]) -> dict[str, Answer]:
    """The answers, with a finding for each excuse of what no attack found: it would hide what is found later.

    Raises:
        UsageError: an excuse names no attack.
    """
    found = dict(answers)
    for name in excuses:
        attack, _, subject = name.partition(": ")
        if attack not in answers:
            raise UsageError(f"excused={{{name!r}: …}} names no attack; they are {', '.join(answers)}")
        answer = found[attack]
        if answer.facts.get("left_out"):  # what was not asked for want of time may be excused
            continue
        if answer.outcome in ("noticed", "finding", "excused") and not any(subject in ("", f.subject) for f in answer.findings):
            idle = Finding(subject or attack, f"excused={{{name!r}: …}} excuses nothing: no such fault is found; leave it out")
            found[attack] = dataclasses.replace(answer, outcome="finding", findings=(*answer.findings, idle))
    return found
