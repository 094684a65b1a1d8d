"""A watch that names programs which take much longer than expected, or do not end, while they run."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence

__all__ = ["INTERRUPT", "Watch"]

INTERRUPT = " (Ctrl-C stops)"  # how a program is ended in a terminal
LEAST, LONGER = 60.0, 5.0  # a program is reported after this many seconds, and this multiple of the expected time


class Watch:
    """A context manager that reports if nothing has finished for much longer than expected, and again after twice that time."""

    def __init__(self, say: Callable[[str], None], least: float = LEAST) -> None:
        """Report through ``say``, but not within the first ``least`` seconds."""
        self._say, self._least = say, least
        self._names: Sequence[str] = ()
        self._since, self._limit = time.monotonic(), math.inf
        self._expected: float | None = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def on(self, names: Sequence[str], expected: float | None) -> None:
        """Restart the watch: these programs run now, and are expected to take at most this many seconds (None: unknown)."""
        self._names, self._expected = names, expected
        self._since, self._limit = time.monotonic(), max(self._least, LONGER * (expected or 0.0))

    def _look(self) -> None:
        while not self._ended.wait(min(1.0, self._least)):
            elapsed = time.monotonic() - self._since
            if elapsed > self._limit:
                self._limit = 2 * elapsed
                names = ", ".join(dict.fromkeys(self._names))
                known = "" if self._expected is None else f", about {self._expected:.0f} s expected"
                self._say(f"still running: {names}; {elapsed:.0f} s{known}{INTERRUPT}")
