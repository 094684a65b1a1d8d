"""What a verification is made of: the task of one claim, the plan of all, and what comes out."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from typing import Any

import xarray as xr

from jaxdyn.engine import timings
from jaxdyn.engine.claim import Claim
from jaxdyn.engine.runs import Request, Runs
from jaxdyn.engine.sweep import Job
from jaxdyn.engine.verdict import Decision

__all__ = ["Conclusion", "Plan", "Task", "Verified"]


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

    @property
    def requests(self) -> list[Request]:
        """All runs: the claim's own, then its controls'."""
        return [self.main, *self.controls.values()]

    @property
    def narrowed(self) -> bool:
        """Whether the caller may have taken away what the judge needs: overridden fields, or fewer seeds than the claim's own."""
        return bool(self.overrides) or len(self.main.seeds) < self.claim.seed_count(self.scale)

    @property
    def command(self) -> str:
        """The command that repeats just this claim."""
        words = ["jaxdyn verify", self.claim.id]
        if self.scale != "quick":
            words.append(f"--scale {self.scale}")
        seeds = self.main.seeds
        contiguous = seeds == tuple(range(seeds[0], seeds[-1] + 1))  # other choices can only be made from Python
        if contiguous and seeds != tuple(range(self.claim.seed_count(self.scale))):
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
        """Expected seconds of work, from timings of earlier calls on this machine (a rough constant for unknown programs)."""
        return sum(timings.expected(job) for job in self.jobs)


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """What follows from a claim's data: the decision, the map over the fields of ``--by``, and its figure (HTML) if drawn."""

    decision: Decision
    by: list[dict[str, Any]] | None = None
    figure: str | None = None


@dataclasses.dataclass(frozen=True)
class Verified:
    """A claim's outcome: the conclusion, the labelled data, and what it cost."""

    claim: Claim
    task: Task
    conclusion: Conclusion
    data: xr.Dataset | None = None
    control_data: dict[str, xr.Dataset] = dataclasses.field(default_factory=dict)
    programs: int = 0
    compile_seconds: float = 0.0
    run_seconds: float = 0.0

    verdict = property(
        lambda self: self.conclusion.decision.verdict, doc="upheld, refuted, toothless, inconclusive, measured or error."
    )
    checks = property(lambda self: self.conclusion.decision.checks, doc="The judge's checks on the main runs.")
    controls = property(lambda self: self.conclusion.decision.controls, doc="The outcome of every negative control.")
    resolution = property(lambda self: self.conclusion.decision.resolution, doc="The smallest distortions that are rejected.")
    by = property(lambda self: self.conclusion.by, doc="The verdict in each cell of the fields of ``by``.")
    as_expected = property(lambda self: self.verdict == self.claim.expected, doc="Whether the verdict is the expected one.")

    def __repr__(self) -> str:
        lines = [f"{self.claim.id}: {self.verdict} (expected {self.claim.expected})"]
        lines += [f"  {'ok  ' if c.passed else 'FAIL'} {c.name}: {c.value:.3g}, bound {c.bound}" for c in self.checks]
        lines += [f"  control {c.name}: {'rejected' if c.rejected else 'NOT rejected'}" for c in self.controls]
        message = self.conclusion.decision.message
        return "\n".join([*lines, *([f"  {message}"] if message else [])])


def _text(value: Any) -> str:
    return ":".join(map(str, value)) if isinstance(value, tuple) else str(value)
