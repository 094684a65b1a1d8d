"""Compiling ahead: a thread compiles the next program while the current one runs.

For a process that runs chunks itself. JAX's precision is set per thread;
:func:`jaxdyn.engine.programs.program.prepare` sets it.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from jaxdyn.engine.programs.chunk import Chunk, Program

__all__ = ["Preparing", "at_work"]

NAME = "jaxdyn compiles ahead"
# One event per thread at work, set when it is done. Threads are not joined: if Ctrl-C interrupts a join, Python 3.11 and 3.12
# take the thread for ended.
_begun: set[threading.Event] = set()


def at_work() -> bool:
    """Whether a thread is compiling: a process that ends must not clean up JAX while the thread uses it."""
    return bool(_begun)


def _end(done: threading.Event) -> None:
    _begun.discard(done)
    done.set()


@atexit.register  # registered after JAX's own handler, and so called before it
def _wait() -> None:
    """Wait for the threads before an interrupted or failed script ends: in the middle of a compilation JAX would abort it."""
    for done in list(_begun):
        done.wait()


class Preparing:
    """One thread that compiles for later chunks; a trial that raises in it raises again when it is run.

    Args:
        prepare: compiles for a chunk, and caches the result.
    """

    def __init__(self, prepare: Callable[[Chunk], Any]) -> None:
        self.prepare = prepare
        self.done = threading.Event()  # of the latest thread
        self.done.set()
        self.seconds: dict[Program, float] = {}  # spent on compiling ahead, by program, until :meth:`taken` returns them

    def begin(self, current: Chunk, queue: Iterable[Chunk]) -> None:
        """Compile for the first queued chunk of another program, unless the thread is still at work."""
        following = next((chunk for chunk in queue if chunk.program not in (current.program, *self.seconds)), None)
        if following is None or not self.done.is_set():
            return
        self.seconds[following.program], self.done = 0.0, threading.Event()
        _begun.add(self.done)
        thread = threading.Thread(target=self._compile, args=(following, self.done), name=NAME, daemon=True)
        try:
            thread.start()  # a daemon: Ctrl-C does not wait for it
        except BaseException:
            if thread.ident is None:  # it has not started
                _end(self.done)
            raise

    def _compile(self, chunk: Chunk, done: threading.Event) -> None:
        start = time.perf_counter()
        with contextlib.suppress(BaseException):  # raised again, and reported, when the chunk is run
            self.prepare(chunk)
        self.seconds[chunk.program] = time.perf_counter() - start
        _end(done)

    def taken(self, chunk: Chunk) -> float:
        """The seconds that compiling a chunk's program ahead took, after waiting for it to end; 0 if it was not begun."""
        if chunk.program in self.seconds:
            self.done.wait()
        return self.seconds.pop(chunk.program, 0.0)
