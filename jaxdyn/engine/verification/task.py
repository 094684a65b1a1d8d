"""Tasks and plans: the runs that a claim asks for, and the jobs that all tasks of a call share."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxdyn.engine.base.parsing import parse_sets, quoted
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.grid import field_table
from jaxdyn.engine.judging.decision import Terms
from jaxdyn.engine.judging.estimate import look
from jaxdyn.engine.programs.chunk import Job, Program
from jaxdyn.engine.runs import costs as timings
from jaxdyn.engine.runs.blocks import Request, Runs
from jaxdyn.engine.runs.planning import plan, why_not_stored
from jaxdyn.errors import one_line

__all__ = ["Plan", "Task", "planned", "value_text"]


@dataclasses.dataclass(frozen=True)
class Task:
    """A claim and the runs it asks for; ``missing``: why they cannot be made here (:mod:`jaxdyn.engine.claims.resource`)."""

    claim: Claim
    scale: str
    main: Request
    controls: dict[str, Request]
    overrides: Mapping[str, Any]
    by: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    fresh: bool = False
    grows: bool = False
    missing: str | None = None

    @property
    def requests(self) -> list[Request]:
        """All requested runs: the claim's own, then its controls'; none if something is missing."""
        return [] if self.missing is not None else [self.main, *self.controls.values()]

    @property
    def narrowed(self) -> bool:
        """Whether the judge may lack data, since fields were overridden or there are fewer seeds than the claim's own."""
        return bool(self.overrides) or len(self.main.seeds) < self.claim.seed_count(self.scale)

    @property
    def terms(self) -> Terms:
        """The circumstances in which the runs are judged."""
        seeds = len(self.main.seeds), self.claim.seed_count(self.scale)
        return Terms(self.narrowed, self.recorded, look(*seeds), seeds)

    def grown(self) -> Task | None:
        """The same task with twice as many seeds, at most the claim's ``max_seeds``; None if no more are allowed."""
        own, most = self.main.seeds, self.claim.max_seeds or 0
        if not self.grows or len(own) >= most:
            return None
        more = range(own[0], own[0] + min(2 * len(own), most))
        controls = {
            name: dataclasses.replace(request, seeds=self.claim.controls[name].seeds(more))
            for name, request in self.controls.items()
        }
        return dataclasses.replace(self, main=dataclasses.replace(self.main, seeds=more), controls=controls)

    @property
    def recorded(self) -> bool:
        """Whether these runs are on the claim's own quick grid, on which a measured claim's values were recorded."""
        return self.scale == "quick" and not self.overrides

    @property
    def command(self) -> str:
        """The command line that repeats this task; a comment that says why, if none does."""
        seeds, most = self.main.seeds, self.claim.max_seeds
        if not isinstance(seeds, range):
            return _not_typed(f"seeds={list(seeds)}")
        words = ["jaxdyn verify", self.claim.id]
        if self.scale != "quick":
            words.append(f"--scale {self.scale}")
        own = seeds == range(self.claim.seed_count(self.scale))
        if self.fresh:
            words.append(f"--fresh {seeds[0]}")
        elif not own or (most and not self.grows and not self.by):  # without --seeds, seeds may be added
            words.append(f"--seeds {len(seeds)}" if seeds[0] == 0 else f"--seeds {seeds[0]}:{seeds[-1] + 1}")
        as_given = [f"{name}={value_text(value)}" for name, value in self.overrides.items()]
        as_run = [f"{name}={self._typed(name, value)}" for name, value in self.overrides.items()]
        sets = next(filter(self._read_back, (as_given, as_run)), None)
        if sets is None:
            return _not_typed(", ".join(f"{name}={one_line(value)}" for name, value in self.overrides.items()))
        words += [f"--set {shlex.quote(text)}" for text in sets]
        if self.by:
            words.append(f"--by {','.join(self.by)}")
        return " ".join([*words, *(f"--load {shlex.quote(path)}" for path in self.load)])

    def _typed(self, name: str, value: Any) -> str:
        """The values of an overridden field, as they were run, as text for ``--set``."""
        grid = self.main.grid
        run = value_text(list(grid.axes[name]) if name in grid.axes else getattr(grid.base, name))
        return f"{run}," if name in grid.axes and len(grid.axes[name]) == 1 and not _is_one(value) else run

    def _read_back(self, sets: Sequence[str]) -> bool:
        """Whether the command line would run the same settings."""
        try:
            again = self.claim.grid(self.scale).replace(**parse_sets(sets))
        except ValueError:
            return False
        return field_table(again) == field_table(self.main.grid) and again.axes.keys() == self.main.grid.axes.keys()


def _is_one(value: Any) -> bool:
    """Whether a value overrides a field by one value, not by a list of them."""
    return isinstance(value, str | tuple | None) or np.ndim(value) == 0


def _not_typed(what: str) -> str:
    return f"# only from Python: {what} cannot be given on the command line"


@dataclasses.dataclass(frozen=True)
class Plan:
    """All tasks of a call and the jobs that they share."""

    tasks: list[Task]
    jobs: list[Job]
    stored: Runs
    store: Path | None = None
    scale: str = "quick"

    def more(self, grown: Sequence[tuple[Task, Task]]) -> list[Job]:
        """The jobs of additional runs, for pairs of tasks (before, now)."""
        added = []
        for before, now in grown:
            for old, new in zip(before.requests, now.requests, strict=True):
                if seeds := new.seeds[len(old.seeds) :]:
                    added.append(dataclasses.replace(new, seeds=seeds))
        compiled = {job.program: job.chunks[0].shape[1] for job in self.jobs if job.chunks and job.chunks[0].zipped}
        return planned(added, self.store, self.scale, lengths=compiled)

    @property
    def runs(self) -> int:
        """Number of runs, stored or not."""
        return sum(job.runs for job in self.jobs)

    @property
    def done(self) -> int:
        """Number of stored runs."""
        return sum(c.runs for job in self.jobs for c in job.done)

    def seconds(self) -> float:
        """Expected seconds of work; see :mod:`jaxdyn.engine.runs.costs`."""
        return sum(self.job_seconds())

    def guessed(self) -> int:
        """Number of programs with guessed times, since they were never timed at their size."""
        return sum(map(timings.guessed, self.jobs))

    def warning(self) -> str | None:
        """Why some runs are not stored, in a sentence (:func:`jaxdyn.engine.runs.planning.why_not_stored`); None if all are."""
        return None if self.store is None else why_not_stored(self.jobs)

    def job_seconds(self) -> list[float]:
        """Expected seconds of each job."""
        return [timings.expected(job) for job in self.jobs]


def planned(
    requests: Sequence[Request],
    store: Path | None,
    scale: str,
    lengths: Mapping[Program, int] | None = None,
    facts: Mapping[Program, Mapping[str, Any]] | None = None,
) -> list[Job]:
    """The jobs of some requests, longest first; the other arguments as in :func:`jaxdyn.engine.runs.planning.plan`."""
    jobs = plan(requests, store=store, quick=scale == "quick", lengths=lengths, facts=facts)
    return sorted(jobs, key=timings.expected, reverse=True)


def value_text(value: Any) -> str:
    """A field's value, or the values of an axis, as text for the command line."""
    if isinstance(value, list | range):
        return ",".join(map(value_text, value))
    if isinstance(value, tuple):
        return ":".join(map(value_text, value))
    return str(value).lower() if isinstance(value, bool | None) else quoted(str(value))
