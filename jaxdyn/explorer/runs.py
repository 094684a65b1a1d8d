"""From the values of knobs to runs, a picture and a verdict; a later move replaces an earlier one.

The runs are those of ``jaxdyn verify`` with the same ``--set`` and ``--seeds``, and so is the verdict; nothing is stored. Compiled
programs stay in memory. So that a knob which leaves an axis with fewer values needs no program of its own, a chunk is filled up to
the shape of one that is compiled, where those runs cost less than compiling.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import xarray as xr

from jaxdyn.engine import registry, timings
from jaxdyn.engine.chunk import Chunk, Job, Program
from jaxdyn.engine.claim import Claim, Judge
from jaxdyn.engine.decision import Decision
from jaxdyn.engine.failure import Failure, let_through
from jaxdyn.engine.outcome import Result
from jaxdyn.engine.planning import plan
from jaxdyn.engine.runs import Runs
from jaxdyn.engine.sweep import MOST_SEEDS
from jaxdyn.engine.task import Plan, Task
from jaxdyn.engine.typed import parse_seeds, parse_sets
from jaxdyn.engine.verdict import judge_cell
from jaxdyn.engine.verify import conclude, make_tasks, run_plan
from jaxdyn.errors import UsageError
from jaxdyn.report.drawing import drawn
from jaxdyn.report.words import duration, plural

__all__ = ["Explorer", "Checked", "Live", "Move", "Picture", "Replaced", "Told", "one_claim"]

LONG, PART = 4.0, 1.0  # expected seconds of runs that are cut into parts, between which a move is heeded, and of each part
PATIENCE = 0.5  # seconds in which a picture is finished although there is a later move: a slider that is dragged shows pictures
EVERY = 0.2  # seconds between two reports of progress at least
RUNNING = threading.Lock()  # one run at a time in this process: matplotlib's settings are global, and so are the cores


class Replaced(KeyboardInterrupt):
    """A later move: an interruption by the person, which the engine lets through wherever it catches errors of a claim."""


@dataclasses.dataclass(frozen=True)
class _Watched:
    """A judge that heeds a later move: it is asked dozens of times for one verdict. ``func`` tells where it was written."""

    func: Judge
    watch: Callable[[], None]

    def __call__(self, data: xr.Dataset) -> Any:
        self.watch()
        return self.func(data)


@dataclasses.dataclass(frozen=True)
class Move:
    """Where the knobs are: those fields that are not at the claim's own values, as ``--set`` takes them.

    Args:
        values: field -> text.
        seeds: as ``--seeds`` takes them; None: the claim's own.
        plain: whether to draw measurement against prediction instead of the claim's own figure.
    """

    values: Mapping[str, str] = dataclasses.field(default_factory=dict)
    seeds: str | None = None
    plain: bool = False


@dataclasses.dataclass(frozen=True)
class Picture:
    """What is shown first: the figure as HTML, or why there is none."""

    task: Task
    figure: str


@dataclasses.dataclass(frozen=True)
class Checked:
    """What is shown before the verdict: the checks of the claim's own runs (:func:`jaxdyn.engine.verdict.judge_cell`)."""

    cell: Mapping[str, Any]


Told: TypeAlias = "Callable[[Any], None]"  # of a Picture, of what is Checked, of a Result, of progress in words


def one_claim(pattern: str, load: Sequence[str | Path]) -> Claim:
    """The claim of this id.

    Raises:
        UsageError: none, or several.
    """
    claims = registry.select([pattern], load)
    if len(claims) > 1:
        raise UsageError(f"explore takes one claim; {pattern!r} matches {len(claims)} (`jaxdyn list {pattern}` shows them)")
    return claims[0]


class Explorer:
    """Runs and judges one claim at the values of its knobs, in this thread.

    Args:
        claim: the claim.
        scale: ``quick`` or ``paper``: the grid from which the knobs start.
        load: files with claims of the user's own, for the command that repeats a run.
    """

    def __init__(self, claim: Claim, scale: str = "quick", load: Sequence[str | Path] = ()) -> None:
        self.claim, self.scale, self.load = claim, scale, tuple(map(str, load))
        self._shapes: dict[tuple[Program, int], dict[int, float]] = {}  # cells of compiled chunks, and what their runs would save
        self._parts: dict[frozenset[Program], int] = {}

    def task(self, move: Move) -> Task:
        """The runs at a move.

        Raises:
            UsageError: a value that is not allowed.
        """
        sets, seeds = parse_sets([f"{name}={text}" for name, text in move.values.items()]), parse_seeds(move.seeds)
        (task,) = make_tasks([self.claim], scale=self.scale, seeds=seeds, overrides=sets, load=self.load)
        return task

    def run(self, move: Move, tell: Told, watch: Callable[[], None] = lambda: None) -> Result:
        """Run, draw and judge.

        Args:
            move: where the knobs are.
            tell: is given progress in words, a :class:`Picture`, and what is :class:`Checked`; again, if seeds are added.
            watch: called between chunks and before the verdict; what it raises ends the run.

        Raises:
            UsageError: a value that is not allowed.
        """
        task = self.task(move)

        def picture_and_verdict(task: Task, data: xr.Dataset, controls: dict[str, xr.Dataset]) -> Decision:
            watch()
            tell(Picture(task, draw(None if move.plain else self.claim.plot, data, task.narrowed)))
            watch()
            tell(Checked(judge_cell(self.claim, data)))
            heeding = dataclasses.replace(self.claim, judge=_Watched(self.claim.judge, watch))
            return conclude(heeding, data, controls, task.by, task.terms)

        jobs = self._planned(task)
        if new := [job for job in jobs if any(not self._knows(chunk) for chunk in job.chunks)]:
            tell(f"compiling {plural(len(new), 'program')}; {duration(sum(map(timings.expected, jobs)))} expected")
        (verified,) = run_plan(Plan([task], jobs, Runs(), None, self.scale), None, _Listener(tell, watch), picture_and_verdict)  # type: ignore[arg-type]
        self._remember(jobs, verified)
        return verified

    def _planned(self, task: Task) -> list[Job]:
        """The jobs of a task: long ones in parts, small chunks in the shape of larger ones that are compiled."""
        quick = self.scale == "quick"
        jobs = plan(task.requests, store=None, quick=quick)
        programs = frozenset(job.program for job in jobs)
        if programs not in self._parts:  # once: parts of another size would be other programs
            seconds, runs = sum(map(timings.expected, jobs)), sum(job.runs for job in jobs)
            self._parts[programs] = max(1, int(runs * PART / seconds)) if seconds > LONG else MOST_SEEDS
        if (most := self._parts[programs]) < MOST_SEEDS:
            jobs = plan(task.requests, store=None, quick=quick, chunk=most)
        for job in jobs:
            job.chunks = [self._filled(chunk) for chunk in job.chunks]
        return jobs

    def _knows(self, chunk: Chunk) -> bool:
        """Whether chunks of this shape were run."""
        return len(chunk.cells) in self._shapes.get((chunk.program, len(chunk.seeds)), {})

    def _filled(self, chunk: Chunk) -> Chunk:
        """The chunk, with its last cell repeated up to the number of cells of a program that is compiled, if that is worth it."""
        shapes = self._shapes.get((chunk.program, len(chunk.seeds)), {})
        own = len(chunk.cells)
        larger = [count for count, saved in shapes.items() if count > own and saved > 0]
        if chunk.program.executor == "map" or self._knows(chunk) or not larger:
            return chunk
        return dataclasses.replace(chunk, cells=chunk.cells + chunk.cells[-1:] * (min(larger) - own))

    def _remember(self, jobs: Sequence[Job], verified: Result) -> None:
        """Which shapes are compiled, and how much longer compiling took than running."""
        costs = {cost.program: cost for cost in verified.costs}
        for job in jobs:
            cost = costs.get(job.program)
            for chunk in job.chunks if cost is not None else ():
                shapes = self._shapes.setdefault((chunk.program, len(chunk.seeds)), {})
                shapes.setdefault(len(chunk.cells), max(cost.compile_seconds, PATIENCE) - cost.run_seconds)  # type: ignore[union-attr]


def draw(plot: Any, data: xr.Dataset, narrowed: bool = False) -> str:
    """A figure as HTML; where it cannot be drawn, why."""
    try:
        return drawn(plot, data, narrowed)
    except BaseException as error:
        let_through(error)
        return f"The figure could not be drawn: {Failure.of(error)}"


class _Listener:
    """A progress bar in words (:class:`jaxdyn.engine.progress.Progress`), at which a later move is heeded."""

    def __init__(self, tell: Told, watch: Callable[[], None]) -> None:
        self._tell, self._watch = tell, watch
        self._total = self._done = 0
        self._told = time.monotonic()

    def start(self, total: int, done: int) -> None:
        """So many runs are asked for."""
        self._total, self._done = total, done
        self._watch()

    def advance(self, runs: int, facts: Mapping[str, Any]) -> None:
        """A chunk is finished."""
        self._done += runs
        if time.monotonic() - self._told > EVERY:
            self._told = time.monotonic()
            self._tell(f"{self._done:,} of {self._total:,} runs")
        self._watch()

    def say(self, text: str) -> None:
        """A program takes long."""
        self._tell(text)


class Live:
    """Moves of one page, worked off in a thread of its own: always the last one.

    Args:
        explorer: runs them.
        tell: called in that thread with the number of the move and what :meth:`Explorer.run` tells, then its outcome, or a
            :class:`jaxdyn.errors.UsageError`; a later move's number is higher.
    """

    def __init__(self, explorer: Explorer, tell: Callable[[int, Any], None]) -> None:
        self._explorer, self._tell = explorer, tell
        self._next: tuple[int, Move] | None = None
        self._changed, self._ended = threading.Condition(), False
        threading.Thread(target=self._work, daemon=True, name="explore").start()

    def move(self, number: int, move: Move) -> None:
        """The knobs are here now; what is under way is replaced."""
        with self._changed:
            self._next = number, move
            self._changed.notify()

    def close(self) -> None:
        """Nobody looks any more."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._next is not None)
                if self._ended or self._next is None:
                    return
                (number, move), self._next = self._next, None
            try:
                with RUNNING:
                    self._run(number, move)
            except Replaced:
                continue

    def _run(self, number: int, move: Move) -> None:
        began, shown = time.monotonic(), False

        def watch() -> None:
            if self._ended or (self._next is not None and (shown or time.monotonic() - began > PATIENCE)):
                raise Replaced

        def tell(what: Any) -> None:
            nonlocal shown
            shown |= isinstance(what, Picture)
            self._tell(number, what)

        try:
            tell(self._explorer.run(move, tell, watch))
        except UsageError as error:
            self._tell(number, error)
        except Exception as error:  # nothing may end this thread: the page would wait for ever
            self._tell(number, UsageError(str(Failure.of(error))))
