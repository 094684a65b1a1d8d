"""The result of a verification: the decision on one claim, its data, the cost of its programs, and its entry in JSON."""

from __future__ import annotations

import dataclasses
import html
from typing import TYPE_CHECKING, Any

import xarray as xr

from jaxdyn.engine.base.failure import let_through
from jaxdyn.engine.base.jsonable import finite
from jaxdyn.engine.base.meanings import meanings
from jaxdyn.engine.catalogue.registry import home, topic
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.contract import provenance
from jaxdyn.engine.claims.description import tested
from jaxdyn.engine.claims.grid import field_table
from jaxdyn.engine.judging.check import bound_text, digits_apart
from jaxdyn.engine.judging.decision import Decision, Outcome, error_decision, teeth
from jaxdyn.engine.judging.digest import digest
from jaxdyn.engine.judging.resolution import guarded
from jaxdyn.engine.programs.chunk import Program
from jaxdyn.engine.verification.origin import judge_code, made_from, plot_code, runs_of
from jaxdyn.engine.verification.task import Task
from jaxdyn.errors import UsageError
from jaxdyn.wording import left_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Cost", "Result", "described", "entry"]

SIGNS = {True: "ok  ", False: "FAIL", None: "?   "}
OUTCOMES = {True: "passed", False: "failed", None: "undecided"}


@dataclasses.dataclass(frozen=True)
class Cost:
    """Cost of one of a claim's programs in this call; zero if all its runs were stored or if it failed."""

    program: Program
    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    runs: int = 0
    cpu_seconds: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Result(Decision):
    """The result of ``jd.verify``: the decision on a claim, its data and its costs.

    Args:
        claim: the claim.
        task: the runs that it asked for.
        data: its labelled runs; None if the trial raised or the claim was skipped.
        control_data: the runs of every control that is a setting.
        costs: the cost of each of its programs.
        digest: of what judged it, :func:`jaxdyn.engine.judging.digest.digest`.
        code: of what judged it, :func:`jaxdyn.engine.verification.origin.judge_code`.
        plot_code: of what drew its figure, :func:`jaxdyn.engine.verification.origin.plot_code`.
        looks: how often its bounds or design were changed after its runs were seen, in words; empty if never.
    """

    claim: Claim
    task: Task
    data: xr.Dataset | None = None
    control_data: dict[str, xr.Dataset] = dataclasses.field(default_factory=dict)
    costs: tuple[Cost, ...] = ()
    digest: str | None = None
    code: str = ""
    plot_code: str = ""
    looks: str = ""

    @classmethod
    def of(cls, decision: Decision, task: Task, **rest: Any) -> Result:
        """The result of a decision on a task, by the judge as it is now."""
        decided = {field.name: getattr(decision, field.name) for field in dataclasses.fields(Decision)}
        claim, hashed = task.claim, digest(task.claim)
        return cls(**decided, claim=claim, task=task, digest=hashed, code=judge_code(claim), plot_code=plot_code(claim), **rest)

    @property
    def teeth(self) -> dict[str, list[str]]:
        """For every check, or reading, the names of the controls and rivals that it rejects."""
        opponents = [*self.controls, *self.rivals]
        return {r.name: [o.name for o in opponents if r.name in o.apart] for r in self.readings} or teeth(self.checks, opponents)

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the expected one."""
        return self.verdict == self.claim.expected

    @property
    def skipped(self) -> bool:
        """Whether the claim was not run, since this machine lacks what it needs: neither as expected nor different."""
        return self.verdict == "skipped"

    @property
    def programs(self) -> int:
        """Number of programs of the claim."""
        return len(self.costs)

    @property
    def compile_seconds(self) -> float:
        """Seconds of compilation of its programs; one that serves several claims counts in each of them."""
        return sum(c.compile_seconds for c in self.costs)

    @property
    def run_seconds(self) -> float:
        """Seconds of running its programs; one that serves several claims counts in each of them."""
        return sum(c.run_seconds for c in self.costs)

    @property
    def cpu_seconds(self) -> float:
        """Seconds of processor time of its programs; one that serves several claims counts in each of them."""
        return sum(c.cpu_seconds for c in self.costs)

    def to_json(self) -> dict[str, Any]:
        """The claim's entry of ``jaxdyn verify --json``: JSON types only, null for numbers that are not finite."""
        return entry(self)

    def plot(self) -> Figure:
        """The claim's figure: its own plot, or measurement against prediction.

        Raises:
            UsageError: there are no data, since the trial raised or the claim was skipped.
        """
        if self.data is None:
            raise UsageError(f"{self.claim.id} has no data to plot: {self.message}")
        import matplotlib

        from jaxdyn import plotting

        style: Any = plotting.STYLE
        with matplotlib.rc_context(style):
            fig = plotting.Drawn(figsize=(7, 3.5), layout="constrained", facecolor="white")
            (self.claim.plot or plotting.default_plot)(guarded(self.data), fig)
            plotting.finish(fig)
        return fig

    def __repr__(self) -> str:
        lines = [f"{self.claim.id}: {self.verdict} (expected {self.claim.expected})"]
        lines += [f"  {'gate' if c.gate else SIGNS[c.passed]} {c}" for c in (*self.gates, *self.checks)]
        lines += [f"  ·    {reading}" for reading in self.readings]
        for kind, outcomes in (("control", self.controls), ("rival", self.rivals)):
            lines += [f"  {kind} {c.name}: {'rejected' if c.rejected else f'NOT rejected{_why(c)}'}" for c in outcomes]
        return "\n".join([*lines, *(f"  {text}" for text in (self.message, self._left_out, self.looks) if text)])

    @property
    def _left_out(self) -> str:
        """How many of its runs are not judged, in words."""
        return left_out(self.task.main.runs, self.diverged, self.outside)

    def _repr_html_(self) -> str:
        """HTML for a notebook: verdict, statement, and a table of checks and controls."""
        checks = [*self.gates, *self.checks]
        rows = [
            (
                f"gate: {c.name}" if c.gate else c.name,
                f"{c.value:.{digits_apart(c.value, c.bound)}g}",
                bound_text(c.bound, digits_apart(c.value, c.bound)),
                OUTCOMES[c.passed],
            )
            for c in checks
        ]
        rows += [(r.name, f"{r.value:.4g}", "", "read") for r in self.readings]
        for kind, outcomes in (("control", self.controls), ("rival", self.rivals)):
            rows += [(f"{kind}: {c.name}", "", "", "rejected" if c.rejected else "not rejected") for c in outcomes]
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        head = "".join(f"<th>{word}</th>" for word in ("check", "value", "bound", "outcome"))
        note = "".join(f"<p>{html.escape(text)}</p>" for text in (self.message, self._left_out, self.looks) if text)
        title = f"<b>{html.escape(self.claim.id)}</b>: {self.verdict} (expected {self.claim.expected})"
        return f"<div><p>{title}</p><p>{html.escape(self.claim.statement)}</p>{note}<table><tr>{head}</tr>{body}</table></div>"


def _why(control: Outcome) -> str:
    """Why an opponent was not rejected: its reason, or the checks or readings that do not reject it."""
    if control.readings:
        return f": reads {'; '.join(map(str, control.readings))}"
    return f": {control.reason or 'also passes with ' + '; '.join(map(str, control.checks))}"


def _settings(result: Result) -> dict[str, Any]:
    return {row["name"]: row["value"] for row in field_table(result.task.main.grid)}


def described(claim: Claim) -> dict[str, Any]:
    """The part of a claim's entry that describes the claim itself, whether it was run or not."""
    return {
        "id": claim.id,
        "theory": claim.theory,
        "counted": claim.counted,
        "title": claim.title,
        "statement": claim.statement,
        "source": claim.source,
        "caption": claim.caption,
        "sibling": claim.sibling,
        "evidence": claim.evidence,
        "assumes": [str(a) for a in claim.assumes],
        "holds": {name: list(ends) for name, ends in claim.holds.items()},
        "bounds": provenance(claim.bounds),
        "printed": claim.printed,
        "talks": list(claim.talks),
        "recorded": claim.records,
        "expected": claim.expected,
        "digest": digest(claim),
        "home": home(claim),
        "topic": topic(claim),
    }


def _entry(result: Result) -> dict[str, Any]:
    # the claim, its verdict and what the verdict rests on
    claim = result.claim
    entry = described(claim) | {
        "digest": result.digest,
        "tested": tested(claim, result.task.main.grid, len(result.task.main.seeds)),
        "verdict": result.verdict,
        "resolution": result.resolution,
        "programs": result.programs,
        "runs": len(result.task.main.grid.cells()) * len(result.task.main.seeds),
        "diverged": result.diverged,
        "compile_seconds": result.compile_seconds,
        "run_seconds": result.run_seconds,
        "cpu_seconds": result.cpu_seconds,
        "outside": result.outside,
        "checks": [dataclasses.asdict(c) for c in result.checks],
        "readings": [dataclasses.asdict(r) for r in result.readings],
        "gates": [dataclasses.asdict(c) for c in result.gates],
        "controls": [dataclasses.asdict(c) for c in result.controls],
        "rivals": [dataclasses.asdict(c) for c in result.rivals],
        "teeth": result.teeth,
        "scale": result.task.scale,
        "seeds": len(result.task.main.seeds),
        "look": result.task.terms.look,
        "seed_range": result.task.main.seed_range,
        "settings": _settings(result),
        "meanings": meanings(claim.quick.setting),
        "command": result.task.command,
        "message": result.message,
        "looks": result.looks,
        "made_from": _made_from(result),
    }
    # parts that only some results have
    if (failure := result.failure) is not None:
        entry["error"] = {"type": failure.kind, "message": failure.message, "place": failure.place}
    if claim.counterpart is not None:
        entry |= {
            "counterpart": claim.counterpart,
            "counterpart_checks": [dataclasses.asdict(c) for c in result.counterpart_checks],
        }
    if result.by is not None:
        entry["by"] = {"fields": list(result.task.by), "cells": result.by}
    return entry


def _made_from(result: Result) -> dict[str, Any] | None:
    """What the result was made from; None where the claim was skipped."""
    programs = [cost.program for cost in result.costs]
    return made_from(programs, runs_of(result.task.requests), result.code, result.plot_code) if programs else None


def entry(result: Result) -> dict[str, Any]:
    """The entry of one claim in JSON types; if its result cannot be written, an entry with the verdict ``error``."""
    try:
        return dict(finite(_entry(result)))
    except BaseException as error:
        let_through(error)
        failed = Result.of(error_decision(error, result.claim.judge), result.task, costs=result.costs)
        return dict(finite(_entry(failed)))
