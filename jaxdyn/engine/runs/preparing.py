"""Threads of a process that runs chunks itself: one compiles the next program while the current one runs in another.

The main thread waits, so that Ctrl-C is heeded. JAX's precision is set per thread; :func:`jaxdyn.engine.programs.program.prepare`
sets it.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import jax

from jaxdyn.engine.programs.chunk import Chunk, Program

__all__ = ["ABANDONED", "Preparing", "at_work", "interruptible", "within"]

T = TypeVar("T")

NAME, RUNS = "jaxdyn compiles ahead", "jaxdyn runs"
SLICE = 0.1  # seconds between two moments at which Ctrl-C is heeded
STATES = ("jax_enable_x64", "jax_default_matmul_precision")  # of JAX, which the engine sets in every thread that runs programs
ABANDONED = "interrupted; the compiled program cannot be stopped, and goes on in its thread until it ends"
# One event per thread at work, set when it is done. Threads are not joined: if Ctrl-C interrupts a join, Python 3.11 and 3.12
# take the thread for ended.
_begun: set[threading.Event] = set()
_running: set[threading.Event] = set()  # of programs for which the main thread waits, or which it has abandoned


def at_work() -> bool:
    """Whether a thread is compiling: a process that ends must not clean up JAX while the thread uses it."""
    return bool(_begun)


def _end(done: threading.Event) -> None:
    _begun.discard(done)
    done.set()


def interruptible(function: Callable[..., T], *args: Any) -> T:
    """``function(*args)``, such that Ctrl-C ends the wait for it in a script or a notebook.

    Python handles a signal in the main thread only, between two of its own instructions, so never during a compiled program. So the
    function is called in another thread, for which the main thread waits in short slices. It is called in this thread where nothing
    turns Ctrl-C into an exception (as on the command line, see :mod:`jaxdyn.engine.base.streams`), or JAX has settings of the main
    thread alone.

    Raises:
        KeyboardInterrupt: Ctrl-C; the function goes on in its thread.
    """
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return function(*args)
    found = list[Any]()
    _in_thread(function, args, found)
    return _outcome(found, function, args)


def within(seconds: float, function: Callable[..., T], *args: Any) -> T:
    """``function(*args)``, for which this thread waits no longer than some seconds: a loop inside it may never end.

    Raises:
        TimeoutError: it is not done in time; it goes on in its thread, since a compiled program cannot be stopped.
    """
    found = list[Any]()
    if not _in_thread(function, args, found, time.monotonic() + seconds):
        raise TimeoutError(f"not done after {seconds:.0f} seconds")
    return _outcome(found, function, args)


def _in_thread(function: Callable[..., Any], args: Sequence[Any], found: list[Any], until: float = math.inf) -> bool:
    """Call a function in a thread that appends its result and its error to ``found``; whether it was done in time.

    Nothing is appended if JAX has settings of this thread alone.

    Raises:
        KeyboardInterrupt: Ctrl-C; the function goes on in its thread.
    """
    settings, context, done = _settings(), contextvars.copy_context(), threading.Event()

    def work() -> None:
        try:
            if _settings() == settings:
                found.append((context.run(function, *args), None))
        except BaseException as error:
            found.append((None, error))
        finally:
            _running.discard(done)
            done.set()

    _running.add(done)
    threading.Thread(target=work, name=RUNS, daemon=True).start()
    try:
        while not done.wait(SLICE):
            if time.monotonic() > until:
                return False
    except KeyboardInterrupt:
        if done.is_set():
            raise
        raise KeyboardInterrupt(ABANDONED) from None
    return True


def _outcome(found: Sequence[Any], function: Callable[..., T], args: Sequence[Any]) -> T:
    """What a thread has found; without anything, the function is called here."""
    if not found:
        return function(*args)
    result, error = found[0]
    if error is not None:
        raise error
    return cast("T", result)


def _settings() -> dict[str, str]:
    """JAX's settings in this thread, apart from those that the engine makes itself."""
    return {name: repr(value) for name, value in jax.config.values.items() if name not in STATES}


@atexit.register  # registered after JAX's own handler, and so called before it
def _wait() -> None:
    """Wait for the threads before an interrupted or failed script ends: in the middle of a compilation JAX would abort it.

    A program that was abandoned (:func:`interruptible`) may never end: the process ends without it, and without JAX's cleaning up.
    """
    if _running:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit({None: 0, KeyboardInterrupt: 130}.get(getattr(sys, "last_type", None), 1))
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
