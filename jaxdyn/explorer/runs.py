"""Runs, pictures and verdicts for the values of knobs; a later move replaces an earlier one.

Runs and verdict are those of ``jaxdyn verify`` with the same ``--set`` and ``--seeds``; nothing is stored. Compiled programs stay
in memory. If a knob leaves an axis with fewer values, the chunk is padded to a shape that is already compiled, provided that the
additional runs cost less than compiling.
"""

from __future__ import annotations

import dataclasses
import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import xarray as xr

from jaxdyn.engine.base.failure import Failure, let_through
from jaxdyn.engine.base.parsing import parse_seeds, parse_sets
from jaxdyn.engine.base.watch import INTERRUPT
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.claim import Claim, Judge
from jaxdyn.engine.judging.decision import Decision
from jaxdyn.engine.judging.verdict import judge_cell
from jaxdyn.engine.programs.chunk import Chunk, Job, Program
from jaxdyn.engine.runs import costs as timings
from jaxdyn.engine.runs.blocks import Runs
from jaxdyn.engine.runs.planning import plan
from jaxdyn.engine.verification import origin
from jaxdyn.engine.verification.result import Result
from jaxdyn.engine.verification.task import Plan, Task
from jaxdyn.engine.verification.verify import conclude, make_tasks, run_plan
from jaxdyn.errors import UsageError
from jaxdyn.report.drawing import drawn
from jaxdyn.status import OK
from jaxdyn.wording import duration, plural

__all__ = ["Checked", "Explorer", "Live", "Move", "Picture", "Replaced", "Stopped", "Tell", "one_claim"]

LONG, PART = 4.0, 1.0  # runs expected to take longer than LONG seconds are cut into parts of PART seconds; moves act in between
PATIENCE = 0.5  # for so many seconds a picture is finished despite a later move, so that dragging a slider shows pictures
EVERY = 0.2  # least seconds between two reports of progress
SAID = tuple(  # fields of a claim that are values
    field.name
    for field in dataclasses.fields(Claim)
    if field.name not in ("trial", "judge", "plot", "controls", "rivals", "quick", "paper")
)
RUNNING = threading.Lock()  # one run at a time in this process: matplotlib's settings are global, and so are the cores


class Replaced(KeyboardInterrupt):
    """Raised when a later move replaces the current one, or the user stops it; like Ctrl-C, the engine never catches it."""


@dataclasses.dataclass(frozen=True)
class _Watched:
    """A judge that calls ``watch`` first, since one verdict calls it dozens of times; ``func`` shows where it was written."""

    func: Judge
    watch: Callable[[], None]

    def __call__(self, data: xr.Dataset) -> Any:
        self.watch()
        return self.func(data)


@dataclasses.dataclass(frozen=True)
class Move:
    """The positions of the knobs: the fields that differ from the claim's own values, written as for ``--set``.

    Args:
        values: field -> text.
        seeds: written as for ``--seeds``; None: the claim's own.
        plain: whether to draw measurement against prediction instead of the claim's own figure.
    """

    values: Mapping[str, str] = dataclasses.field(default_factory=dict)
    seeds: str | None = None
    plain: bool = False


@dataclasses.dataclass(frozen=True)
class Picture:
    """The first result to show: the figure as HTML, or why it could not be drawn."""

    task: Task
    figure: str
    own: bool = True  # the claim's own, not measurement against prediction
    diverged: int = 0  # runs that are not ok


@dataclasses.dataclass(frozen=True)
class Checked:
    """The result to show before the verdict: checks of the claim's own runs (:func:`jaxdyn.engine.judging.verdict.judge_cell`)."""

    cell: Mapping[str, Any]


class Stopped:
    """The outcome of a move that the user stopped."""


Tell: TypeAlias = "Callable[[Any], None]"  # takes a Picture, a Checked, a Result, or progress in words


def one_claim(pattern: str, load: Sequence[str | Path]) -> Claim:
    """The only claim that matches a pattern.

    Raises:
        UsageError: no claim matches, or several.
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
        load: files with the user's own claims, for the command that repeats a run.
    """

    def __init__(self, claim: Claim, scale: str = "quick", load: Sequence[str | Path] = ()) -> None:
        self.claim, self.scale, self.load = claim, scale, tuple(map(str, load))
        # (program, seeds) -> cells of a compiled chunk -> seconds by which compiling took longer than running
        self._shapes: dict[tuple[Program, int], dict[int, float]] = {}
        self._parts: dict[frozenset[Program], int | None] = {}

    def task(self, move: Move) -> Task:
        """The runs for a move.

        Raises:
            UsageError: a value that is not allowed.
        """
        sets, seeds = parse_sets([f"{name}={text}" for name, text in move.values.items()]), parse_seeds(move.seeds)
        (task,) = make_tasks([self.claim], scale=self.scale, seeds=seeds, overrides=sets, load=self.load)
        return task

    def basis(self, move: Move) -> str:
        """Hash of all that the verdict on a move rests on, and of what is said of the claim: the same in processes that agree."""
        task, texts = self.task(move), [f"{name}={getattr(self.claim, name)!r}" for name in SAID]
        programs = origin.traced_programs(origin.programs_of(task.requests))
        codes = origin.judge_code(self.claim), origin.plot_code(self.claim)
        made_from = origin.made_from(programs, origin.runs_of(task.requests), *codes)
        return hashlib.sha256(repr((made_from, texts)).encode()).hexdigest()

    def run(self, move: Move, tell: Tell, watch: Callable[[], None] = lambda: None) -> Result:
        """Run, draw and judge.

        Args:
            move: the positions of the knobs.
            tell: called with progress in words, a :class:`Picture` and a :class:`Checked`, repeatedly if seeds are added.
            watch: called between chunks and before the verdict; an exception from it ends the run.

        Raises:
            UsageError: a value that is not allowed.
        """
        task = self.task(move)

        def picture_and_verdict(task: Task, data: xr.Dataset, controls: dict[str, xr.Dataset]) -> Decision:
            watch()
            figure = draw(None if move.plain else self.claim.plot, data, task.narrowed)
            tell(Picture(task, figure, own=not move.plain, diverged=int((data.status != OK).sum())))
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
        """The jobs of a task: long ones in parts, small chunks padded to shapes that are already compiled."""
        jobs = plan(task.requests, store=None, quick=self.scale == "quick", chunk=self._part)
        for job in jobs:
            job.chunks = [self._filled(chunk) for chunk in job.chunks]
        return jobs

    def _part(self, jobs: list[Job]) -> int | None:
        """The largest number of runs in a part, None where all are short."""
        programs = frozenset(job.program for job in jobs)
        if programs not in self._parts:  # decided once: parts of another size would need other programs
            seconds, runs = sum(map(timings.expected, jobs)), sum(job.runs for job in jobs)
            self._parts[programs] = max(1, int(runs * PART / seconds)) if seconds > LONG else None
        return self._parts[programs]

    def _knows(self, chunk: Chunk) -> bool:
        """Whether a chunk of this shape has already run."""
        cells, seeds = chunk.shape
        return cells in self._shapes.get((chunk.program, seeds), {})

    def _filled(self, chunk: Chunk) -> Chunk:
        """The chunk, for the shape of a larger compiled one with as many seeds, if that is cheaper than compiling."""
        own, seeds = chunk.shape
        larger = [count for count, saved in self._shapes.get((chunk.program, seeds), {}).items() if count > own and saved > 0]
        if chunk.program.executor == "map" or self._knows(chunk) or not larger:
            return chunk
        return dataclasses.replace(chunk, room=(min(larger), seeds))

    def _remember(self, jobs: Sequence[Job], verified: Result) -> None:
        """Remember which shapes are compiled, and how much longer compiling took than running."""
        costs = {cost.program: cost for cost in verified.costs}
        for job in jobs:
            cost = costs.get(job.program)
            for chunk in job.chunks if cost is not None else ():
                cells, seeds = chunk.shape
                shapes = self._shapes.setdefault((chunk.program, seeds), {})
                shapes.setdefault(cells, max(cost.compile_seconds, PATIENCE) - cost.run_seconds)  # type: ignore[union-attr]


def draw(plot: Any, data: xr.Dataset, narrowed: bool = False) -> str:
    """A figure as HTML, or why it could not be drawn."""
    try:
        return drawn(plot, data, narrowed)
    except BaseException as error:
        let_through(error)
        return f"The figure could not be drawn: {Failure.of(error)}"


class _Listener:
    """Progress in words, in place of :class:`jaxdyn.engine.base.progress.Progress`; it calls ``watch`` at every chunk."""

    def __init__(self, tell: Tell, watch: Callable[[], None]) -> None:
        self._tell, self._watch = tell, watch
        self._total = self._done = 0
        self._reported = time.monotonic()

    def start(self, total: int, done: int) -> None:
        """Set the number of runs."""
        self._total, self._done = total, done
        self._watch()

    def advance(self, runs: int, facts: Mapping[str, Any]) -> None:
        """Count a finished chunk."""
        self._done += runs
        if time.monotonic() - self._reported > EVERY:
            self._reported = time.monotonic()
            self._tell(f"{self._done:,} of {plural(self._total, 'run')}")
        self._watch()

    def say(self, text: str) -> None:
        """Pass on a sentence, e.g. that a program takes long."""
        self._tell(text.removesuffix(INTERRUPT))


class Live:
    """Runs the moves of one page in a separate thread, always the latest one.

    Args:
        explorer: runs the moves.
        tell: called in that thread with the number of the move and everything that :meth:`Explorer.run` tells, then with its
            outcome, a :class:`jaxdyn.errors.UsageError` or :class:`Stopped`; later moves have higher numbers.
    """

    def __init__(self, explorer: Explorer, tell: Callable[[int, Any], None]) -> None:
        self._explorer, self._tell = explorer, tell
        self._next: tuple[int, Move] | None = None
        self._stopped: int | None = None
        self._changed, self._ended = threading.Condition(), False
        threading.Thread(target=self._work, daemon=True, name="explore").start()

    def move(self, number: int, move: Move) -> None:
        """Set the latest move, which replaces a running one."""
        with self._changed:
            self._next, self._stopped = (number, move), None  # pages count their moves alike, and one may follow another here
            self._changed.notify()

    def stop(self, number: int) -> None:
        """End the run of a move between two of its parts, unless a later move replaces it anyway."""
        self._stopped = number

    def close(self) -> None:
        """End the thread: the page is closed."""
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
                self._wait_for_others(number)
                try:
                    self._run(number, move)
                finally:
                    RUNNING.release()
            except Replaced:
                if number == self._stopped:
                    self._tell(number, Stopped())

    def _wait_for_others(self, number: int) -> None:
        """Take :data:`RUNNING`, or say who has it and wait; a later move, a stop, or the end of the page ends the wait."""
        if RUNNING.acquire(blocking=False):
            return
        self._tell(number, "another widget of this session is running; this one waits until it ends")
        while not RUNNING.acquire(timeout=EVERY):
            if self._ended or self._next is not None or number == self._stopped:
                raise Replaced

    def _run(self, number: int, move: Move) -> None:
        began, shown = time.monotonic(), False

        def watch() -> None:
            replaced = self._next is not None and (shown or time.monotonic() - began > PATIENCE)
            if self._ended or number == self._stopped or replaced:
                raise Replaced

        def tell(what: Any) -> None:
            nonlocal shown
            shown |= isinstance(what, Picture)
            self._tell(number, what)

        tell("planning the runs")
        try:
            tell(self._explorer.run(move, tell, watch))
        except UsageError as error:
            self._tell(number, error)
        except Exception as error:  # nothing may end this thread: the page would wait forever
            self._tell(number, UsageError(str(Failure.of(error))))
