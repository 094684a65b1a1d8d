"""Compiling ahead: in a thread the next program is compiled while one runs.

For a process that runs chunks itself. JAX's precision belongs to the thread, and
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
# One for each thread at work, set when it is done. They are not joined: where Ctrl-C interrupts that, Python 3.11 and 3.12 take
# the thread for ended.
_begun: set[threading.Event] = set()


def at_work() -> bool:
    """Whether a thread is compiling: a process that ends then must not tidy up JAX under its feet."""
    return bool(_begun)


def _end(done: threading.Event) -> None:
    _begun.discard(done)
    done.set()


@atexit.register  # after JAX's own, and so called before it
def _wait() -> None:
    """A script that is interrupted, or fails, ends when the thread has compiled: in the middle of that JAX would abort it."""
    for done in list(_begun):
        done.wait()


class Preparing:
    """One thread that compiles for chunks to come; what a trial raises there it raises again where it is run.

    Args:
        prepare: compiles for a chunk, and keeps what it compiled.
    """

    def __init__(self, prepare: Callable[[Chunk], Any]) -> None:
        self.prepare = prepare
        self.done = threading.Event()  # of the latest thread
        self.done.set()
        self.seconds: dict[Program, float] = {}  # that compiling ahead took, until they are asked for

    def begin(self, current: Chunk, queue: Iterable[Chunk]) -> None:
        """Start on the first chunk of another program than the current one, unless the thread is still at work."""
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
        with contextlib.suppress(BaseException):  # it is raised again, and reported, where the chunk is run
            self.prepare(chunk)
        self.seconds[chunk.program] = time.perf_counter() - start
        _end(done)

    def taken(self, chunk: Chunk) -> float:
        """Wait until a chunk's program is compiled, if that has begun; the seconds it took."""
        if chunk.program in self.seconds:
            self.done.wait()
        return self.seconds.pop(chunk.program, 0.0)
