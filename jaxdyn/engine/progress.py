"""Progress of long work on standard error: runs done, rate, time left; no bar where that is not a terminal."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

__all__ = ["Progress"]


class Progress:
    """A context manager around one bar of runs; ``advance`` is called for each finished chunk."""

    def __init__(self, title: str, *, unit: str = "runs", enabled: bool | None = None) -> None:
        """Show a bar called ``title`` that counts ``unit``; by default only where standard error is a terminal."""
        shown = sys.stderr.isatty() if enabled is None else enabled
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit + "  {task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        self._bar = Bar(*columns, console=Console(stderr=True), disable=not shown, transient=True)
        self._task = self._bar.add_task(title, total=None, rate="")
        self._compile = 0.0

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line above the bar; where there is no bar, just print it."""
        if self._bar.disable:
            print(text, file=sys.stderr, flush=True)
        else:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def start(self, total: int, done: int) -> None:
        """Set the number of runs, and how many are stored already."""
        self._bar.update(self._task, total=total, completed=done)

    def advance(self, runs: int, facts: dict[str, Any]) -> None:
        """Count a finished chunk."""
        self._compile += facts["compile_seconds"]
        self._bar.update(self._task, advance=runs)
        speed = self._bar.tasks[self._task].speed
        rate = f"{speed:,.1f}/s" if speed else ""
        self._bar.update(self._task, rate=rate + (f"  (compiling {self._compile:.0f} s)" if self._compile else ""))
