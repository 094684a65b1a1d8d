"""Progress of long work on standard error: a bar with runs, rate and time left; outside a terminal, a line for a silent minute."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

__all__ = ["Delayed", "Progress", "in_notebook"]

SOON = 2.0  # seconds
EVERY = 60.0  # seconds between two lines if there is no bar
FIRST = 10.0  # seconds of silence before its first line


class _Count(ProgressColumn):
    """How many of all runs are done, and how fast; nothing of work without parts."""

    def render(self, task: Task) -> Text:
        """One cell of the bar."""
        if task.total is None:
            return Text()
        done = f"{task.completed:,.0f}/{task.total:,.0f}"
        return Text(f"{done} {task.fields['unit']}  {task.fields['rate']}", style="progress.download")


class _Clock(ProgressColumn):
    """The time left, or, of work without parts, the time since it began."""

    def __init__(self) -> None:
        super().__init__()
        self._left, self._past = TimeRemainingColumn(), TimeElapsedColumn()

    def render(self, task: Task) -> Text:
        """One cell of the bar."""
        return (self._past if task.total is None else self._left).render(task)


class Progress:
    """A context manager around one bar of runs; ``advance`` is called for each finished chunk."""

    def __init__(self, title: str, *, unit: str = "runs", enabled: bool | None = None) -> None:
        """Show a bar called ``title`` that counts ``unit``; by default only where standard error is a terminal."""
        shown = sys.stderr.isatty() if enabled is None else enabled
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            _Count(),
            _Clock(),
        )
        self._bar = Bar(*columns, console=Console(stderr=True), disable=not shown, transient=True)
        self._title, self._unit = title, unit
        self._task = self._bar.add_task(title, total=None, rate="", unit=unit)
        self._compile = 0.0
        self._began = self._reported = time.monotonic()
        self._work = self._worked = 0.0
        self._opened = self._said = self._began
        self._ended = threading.Event()

    def __enter__(self) -> Progress:
        self._bar.start()
        if self._bar.disable:
            threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._bar.stop()

    def _beat(self) -> None:
        """Say how far work has come after a silent minute, whatever it is that takes long."""
        while not self._ended.wait(min(1.0, EVERY)):
            now = time.monotonic()
            if now - self._said >= (min(FIRST, EVERY) if self._said == self._opened else EVERY):
                bar = self._bar.tasks[self._task]
                of = "" if bar.total is None else f"{bar.completed:,.0f} of {bar.total:,.0f} {bar.fields['unit']}, "
                self.say(f"{bar.description}: {of}{now - self._opened:.0f} s so far")

    def say(self, text: str) -> None:
        """Print a line, above the bar if there is one."""
        self._said = time.monotonic()
        if self._bar.disable:
            print(text, file=sys.stderr, flush=True)
        else:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def start(self, total: int, done: int) -> None:
        """Set the number of runs, and how many are already stored."""
        self._bar.update(self._task, description=self._title, unit=self._unit, total=total, completed=done)
        self._began = self._reported = time.monotonic()

    def part(self, title: str, unit: str, done: int, total: int) -> None:
        """Show how far some work before the runs has come."""
        self._bar.update(self._task, description=title, unit=unit, total=total, completed=done)

    def expect(self, seconds: float) -> None:
        """Set the expected seconds of all work, summed over processes."""
        self._work, self._worked = seconds, 0.0

    def advance(self, runs: int, facts: dict[str, Any]) -> None:
        """Count a finished chunk, with its ``expected_seconds`` if known."""
        self._worked += facts.get("expected_seconds", 0.0)
        self._tell()
        self._compile += facts["compile_seconds"]
        self._bar.update(self._task, advance=runs)
        speed = self._bar.tasks[self._task].speed
        rate = f"{speed:,.1f}/s" if speed else ""
        self._bar.update(self._task, rate=rate + (f"  (compiling {self._compile:.0f} s)" if self._compile else ""))

    def _tell(self) -> None:
        """Without a bar, print once per minute the finished share of the expected seconds, and the time left at this speed."""
        now = time.monotonic()
        if self._bar.disable and self._work > 0 and self._worked > 0 and now - self._reported >= EVERY:
            self._reported, share = now, min(self._worked / self._work, 1.0)
            left = (now - self._began) * (1 - share) / share
            self.say("runs done, judging" if share == 1 else f"{share:.0%} done, about {max(left / 60, 1):.0f} min left")


class Delayed(Progress):
    """A progress that says nothing of work that ends within :data:`SOON` seconds."""

    def __init__(self, title: str, *, unit: str = "runs") -> None:
        """As :class:`Progress`; in notebooks there is a bar, too."""
        super().__init__(title, unit=unit, enabled=True if in_notebook() else None)
        self._timer = threading.Timer(SOON, self._bar.start)
        self._timer.daemon = True

    def __enter__(self) -> Progress:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()  # a bar that starts now would stay
        self._bar.stop()


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    return "ipykernel" in sys.modules and not sys.stderr.isatty()
