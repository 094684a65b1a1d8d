"""What a verification is made of: the task of one claim, the plan of all, and what comes out."""

from __future__ import annotations

import dataclasses
import html
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import xarray as xr

from jaxdyn.engine import timings
from jaxdyn.engine.chunk import Program
from jaxdyn.engine.claim import Claim
from jaxdyn.engine.decision import Decision, Outcome, teeth
from jaxdyn.engine.judge import Check, bound_text
from jaxdyn.engine.runs import Request, Runs
from jaxdyn.engine.sweep import Job
from jaxdyn.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Conclusion", "Cost", "Plan", "Task", "Verified"]


SIGNS = {True: "ok  ", False: "FAIL", None: "?   "}
OUTCOMES = {True: "passed", False: "failed", None: "undecided"}


@dataclasses.dataclass(frozen=True)
class Task:
    """One claim and the runs it asks for."""

    claim: Claim
    scale: str
    main: Request
    controls: dict[str, Request]
    overrides: Mapping[str, Any]
    by: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    fresh: bool = False

    @property
    def requests(self) -> list[Request]:
        """All runs: the claim's own, then its controls'."""
        return [self.main, *self.controls.values()]

    @property
    def narrowed(self) -> bool:
        """Whether the caller may have taken away what the judge needs: overridden fields, or fewer seeds than the claim's own."""
        return bool(self.overrides) or len(self.main.seeds) < self.claim.seed_count(self.scale)

    @property
    def recorded(self) -> bool:
        """Whether these are the runs on which what a measured claim has found was recorded: its own quick grid."""
        return self.scale == "quick" and not self.overrides

    @property
    def command(self) -> str:
        """The command that repeats just this claim."""
        words = ["jaxdyn verify", self.claim.id]
        if self.scale != "quick":
            words.append(f"--scale {self.scale}")
        seeds = self.main.seeds
        contiguous = seeds == tuple(range(seeds[0], seeds[-1] + 1))  # other choices can only be made from Python
        if contiguous and self.fresh:
            words.append(f"--fresh {seeds[0]}")
        elif contiguous and seeds != tuple(range(self.claim.seed_count(self.scale))):
            words.append(f"--seeds {len(seeds)}" if seeds[0] == 0 else f"--seeds {seeds[0]}:{seeds[-1] + 1}")
        for name, value in self.overrides.items():
            text = ",".join(map(_text, value)) if isinstance(value, list | range) else _text(value)
            words.append(f"--set {shlex.quote(f'{name}={text}')}")
        if self.by:
            words.append(f"--by {','.join(self.by)}")
        return " ".join([*words, *(f"--load {shlex.quote(path)}" for path in self.load)])


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a call of verify will do."""

    tasks: list[Task]
    jobs: list[Job]
    stored: Runs

    @property
    def runs(self) -> int:
        """All runs, stored or not."""
        return sum(job.runs for job in self.jobs)

    @property
    def done(self) -> int:
        """Runs whose results are there already."""
        return sum(c.runs for job in self.jobs for c in job.done)

    def seconds(self) -> float:
        """Expected seconds of work; see :mod:`jaxdyn.engine.timings`."""
        return sum(self.job_seconds())

    def guessed(self) -> int:
        """Programs that have not run at their size before, so that their expected seconds are a guess."""
        return sum(map(timings.guessed, self.jobs))

    def job_seconds(self) -> list[float]:
        """Expected seconds of each job."""
        return [timings.expected(job) for job in self.jobs]


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """What follows from a claim's data: the decision, the map over the fields of ``--by``, and its figure (HTML) if drawn."""

    decision: Decision
    by: list[dict[str, Any]] | None = None
    figure: str | None = None


@dataclasses.dataclass(frozen=True)
class Cost:
    """What one program of a claim cost in this call; zero where all its runs were stored or where it failed."""

    program: Program
    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    runs: int = 0
    cpu_seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Verified:
    """A claim's outcome: the conclusion, the labelled data, and what it cost."""

    claim: Claim
    task: Task
    conclusion: Conclusion
    data: xr.Dataset | None = None
    control_data: dict[str, xr.Dataset] = dataclasses.field(default_factory=dict)
    costs: tuple[Cost, ...] = ()

    @property
    def verdict(self) -> str:
        """One of upheld, refuted, toothless, inconclusive, measured, error."""
        return self.conclusion.decision.verdict

    @property
    def checks(self) -> list[Check]:
        """The judge's checks on the main runs."""
        return self.conclusion.decision.checks

    @property
    def controls(self) -> list[Outcome]:
        """The outcome of every negative control."""
        return self.conclusion.decision.controls

    @property
    def gates(self) -> list[Check]:
        """What had to be true of the runs before the statement speaks."""
        return self.conclusion.decision.gates

    @property
    def rivals(self) -> list[Outcome]:
        """The outcome of every rival."""
        return self.conclusion.decision.rivals

    @property
    def teeth(self) -> dict[str, list[str]]:
        """For every check the controls and rivals that it rejects."""
        return teeth(self.checks, [*self.controls, *self.rivals])

    @property
    def resolution(self) -> dict[str, dict[str, Any]]:
        """The smallest distortions that are rejected."""
        return self.conclusion.decision.resolution

    @property
    def by(self) -> list[dict[str, Any]] | None:
        """The verdict in each cell of the fields of ``by``."""
        return self.conclusion.by

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the expected one."""
        return self.verdict == self.claim.expected

    @property
    def programs(self) -> int:
        """How many programs the claim needs."""
        return len(self.costs)

    @property
    def compile_seconds(self) -> float:
        """Seconds of compilation of its programs; one that serves several claims counts in each of them."""
        return sum(c.compile_seconds for c in self.costs)

    @property
    def run_seconds(self) -> float:
        """Seconds of running its programs; one that serves several claims counts in each of them."""
        return sum(c.run_seconds for c in self.costs)

    def to_json(self) -> dict[str, Any]:
        """The claim's entry of ``jaxdyn verify --json``: JSON types only, null for numbers that are not finite."""
        from jaxdyn.engine.payload import entry

        return entry(self)

    def plot(self) -> Figure:
        """The claim's figure: its own plot, or measurement against prediction.

        Raises:
            UsageError: there are no data, since the trial raised.
        """
        if self.data is None:
            raise UsageError(f"{self.claim.id} has no data to plot: {self.conclusion.decision.message}")
        import matplotlib
        from matplotlib.figure import Figure

        from jaxdyn import plotting

        style: Any = plotting.STYLE
        with matplotlib.rc_context(style):
            fig = Figure(figsize=(7, 3.5), layout="constrained", facecolor="white")
            (self.claim.plot or plotting.default_plot)(self.data, fig)
            plotting.finish(fig)
        return fig

    def __repr__(self) -> str:
        lines = [f"{self.claim.id}: {self.verdict} (expected {self.claim.expected})"]
        lines += [f"  {'gate' if c.gate else SIGNS[c.passed]} {c}" for c in (*self.gates, *self.checks)]
        for kind, outcomes in (("control", self.controls), ("rival", self.rivals)):
            lines += [f"  {kind} {c.name}: {'rejected' if c.rejected else f'NOT rejected{_why(c)}'}" for c in outcomes]
        message = self.conclusion.decision.message
        return "\n".join([*lines, *([f"  {message}"] if message else [])])

    def _repr_html_(self) -> str:
        """How a notebook shows it: verdict, statement, and a table of checks and controls."""
        checks = [*self.gates, *self.checks]
        rows = [
            (f"gate: {c.name}" if c.gate else c.name, f"{c.value:.4g}", bound_text(c.bound), OUTCOMES[c.passed]) for c in checks
        ]
        for kind, outcomes in (("control", self.controls), ("rival", self.rivals)):
            rows += [(f"{kind}: {c.name}", "", "", "rejected" if c.rejected else "not rejected") for c in outcomes]
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        head = "".join(f"<th>{word}</th>" for word in ("check", "value", "bound", "outcome"))
        message = self.conclusion.decision.message
        note = f"<p>{html.escape(message)}</p>" if message else ""
        title = f"<b>{html.escape(self.claim.id)}</b>: {self.verdict} (expected {self.claim.expected})"
        return f"<div><p>{title}</p><p>{html.escape(self.claim.statement)}</p>{note}<table><tr>{head}</tr>{body}</table></div>"


def _why(control: Outcome) -> str:
    """Why a control was not rejected: its reason, or the values with which its checks pass."""
    return f": {control.reason or 'also passes with ' + '; '.join(map(str, control.checks))}"


def _text(value: Any) -> str:
    """A field's value as the command line takes it."""
    if isinstance(value, tuple):
        return ":".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool | None) else str(value)
