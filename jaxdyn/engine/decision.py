"""The decision on a claim, the outcomes of its controls and rivals, and which check rejects which of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxdyn.engine.failure import Failure
from jaxdyn.engine.judge import Check

__all__ = ["Decision", "Outcome", "decision_from", "error_decision", "teeth"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The judge's checks on one control or rival; ``reason`` where it was not asked or could not decide."""

    name: str
    rejected: bool
    checks: list[Check]
    reason: str | None = None


@dataclasses.dataclass(frozen=True)
class Decision:
    """A verdict and all that it rests on."""

    verdict: str
    checks: list[Check] = dataclasses.field(default_factory=list)
    gates: list[Check] = dataclasses.field(default_factory=list)
    controls: list[Outcome] = dataclasses.field(default_factory=list)
    rivals: list[Outcome] = dataclasses.field(default_factory=list)
    resolution: dict[str, dict[str, Any]] = dataclasses.field(default_factory=lambda: {"scale": {}, "mix": {}})
    counterpart_checks: list[Check] = dataclasses.field(default_factory=list)
    diverged: int = 0
    outside: int = 0
    message: str | None = None
    failure: Failure | None = None


def teeth(checks: Sequence[Check], opponents: Sequence[Outcome]) -> dict[str, list[str]]:
    """Which check rejects which control or rival: for every check the names of those that it fails on."""
    return {c.name: [o.name for o in opponents if any(d.name == c.name and d.passed is False for d in o.checks)] for c in checks}


def decision_from(saved: Mapping[str, Any]) -> Decision:
    """A decision from its fields as JSON gives them back (:func:`dataclasses.asdict`), but for a failure.

    Raises:
        ValueError: fields that a decision does not have.
    """
    try:
        outcomes = {k: [Outcome(**{**o, "checks": _checks_from(o["checks"])}) for o in saved[k]] for k in ("controls", "rivals")}
        checks = {name: _checks_from(saved[name]) for name in ("checks", "gates", "counterpart_checks")}
        return Decision(**{**saved, **checks, **outcomes, "failure": None})
    except (TypeError, KeyError) as error:
        raise ValueError(f"no decision: {error}") from None


def _checks_from(saved: list[dict[str, Any]]) -> list[Check]:
    def pair(value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    return [Check(**{**c, "bound": pair(c["bound"]), "interval": pair(c["interval"])}) for c in saved]


def error_decision(error: BaseException | Failure, author: Callable[..., Any] | None = None) -> Decision:
    """The decision when a trial or a judge raised; ``author`` is a function of the claim, to tell its files from libraries."""
    failure = error if isinstance(error, Failure) else Failure.of(error, author)
    return Decision("error", message=str(failure), failure=failure.text_only())
