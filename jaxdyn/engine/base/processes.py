"""Processes that this one starts: Ctrl-C is this one's business, and they end when it ends."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker

__all__ = ["depend_on_parent", "without_interrupts"]


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """Processes started within this block ignore Ctrl-C, which the parent handles; while importing they would print a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")  # it warns when it cleans up after an interrupted process
    resource_tracker.ensure_running()  # if it were started later, it would unblock the signal
    sys.warnoptions.pop()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def depend_on_parent() -> None:
    """In a started process: leave Ctrl-C to the parent, and end when it is gone, however that comes about."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent stops no process that it started: they would wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
