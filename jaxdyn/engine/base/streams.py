"""Standard streams that are closed, full, or lack some characters; and Ctrl-C while a program runs.

Python handles a signal only between two of its own instructions, so never during a compiled program that does not end; an exception
raised by the handler may also be swallowed. So the system's handler writes to a pipe, and a thread that reads it ends the process.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, TextIO

__all__ = ["INTERRUPTED", "closed", "obey", "prepare", "telling", "to_standard_error"]

INTERRUPTED = "jaxdyn: interrupted; run the same command to resume"
SILENT = 5.0  # seconds of silence after which it is said, outside a terminal, what takes long
RESTORED = "\r\x1b[K\x1b[?25h"  # clears the line of the progress bar and shows the cursor


class _Closed(io.TextIOBase):
    """Stands in for a stream that was closed when the process began."""

    def write(self, text: str) -> NoReturn:
        """Raise an error that says so."""
        raise OSError(9, "it is closed")


def prepare() -> None:
    """Make the standard streams accept every character (as its code if their encoding lacks it), and replace closed streams."""
    sys.stdout = _Closed() if sys.stdout is None else sys.stdout
    sys.stderr = open(os.devnull, "w", encoding="utf-8") if sys.stderr is None else sys.stderr  # noqa: SIM115 - for the life of the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def to_standard_error() -> Iterator[None]:
    """Send what is written to standard output inside the ``with`` block to standard error, also past Python's own stream.

    A user's file or judge, a library or a process that they start may write to the descriptor itself; the JSON that follows must
    stand alone.
    """
    out, kept = sys.stdout, None
    with contextlib.suppress(OSError, ValueError):  # a closed stream
        out.flush()
    with contextlib.suppress(OSError):
        kept = os.dup(1)
        os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            out.flush()  # of a print to sys.__stdout__
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


@contextlib.contextmanager
def telling(what: str) -> Iterator[None]:
    """Show what is done meanwhile, and for how many seconds; without a terminal, say so once it has taken :data:`SILENT` seconds.

    On a terminal it is a line that is cleared at the end.
    """
    if sys.stderr is None:
        yield
        return
    shown, ended = sys.stderr.isatty(), threading.Event()
    if shown:
        print(f"{what} …", end="", file=sys.stderr, flush=True)
    counting = threading.Thread(target=_count, args=(what, sys.stderr, shown, ended), daemon=True)
    counting.start()
    try:
        yield
    finally:
        ended.set()
        counting.join()  # what it writes now would stay
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _count(what: str, stream: TextIO, shown: bool, ended: threading.Event) -> None:
    """Count the seconds on a terminal; elsewhere say once that something takes long."""
    with contextlib.suppress(OSError, ValueError):  # the stream may be closed
        if not shown:
            if not ended.wait(SILENT):
                print(f"{what} …", file=stream, flush=True)
            return
        began = time.monotonic()
        while not ended.wait(1.0):
            print(f"\r{what} … {time.monotonic() - began:.0f} s", end="", file=stream, flush=True)


def closed(error: OSError) -> str:
    """One sentence on why standard output cannot be used; nothing is written to it any more, not even when Python exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return f"jaxdyn: cannot write to standard output: {error.strerror or error}"


def obey() -> None:
    """Make Ctrl-C, and a request to end, end this process at once, with one sentence, whatever it does.

    That is so even during a compiled program or inside a broad ``except``.

    No file is left half-written: all writes are atomic (:func:`jaxdyn.engine.storage.store.atomic_write`).
    """
    ending = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    for number in ending:
        signal.signal(number, _nothing)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader, writer, ending), daemon=True).start()


def _nothing(*_: Any) -> None:
    """Do nothing: an exception here could surface in a callback that cannot pass it on, or half-way through an import in C."""


def _watch(reader: socket.socket, writer: socket.socket, ending: Sequence[int]) -> None:
    """End the process after an interruption; holding ``writer`` keeps it open, since the system writes to it."""
    while (number := reader.recv(1)[0]) not in ending:
        pass
    with contextlib.suppress(OSError, ValueError):
        os.write(2, f"{RESTORED if os.isatty(2) else ''}{INTERRUPTED}\n".encode())
    workers = sys.modules.get("multiprocessing")  # if it was never imported, there are no workers
    for worker in workers.active_children() if workers else ():
        worker.kill()
    os._exit(128 + number)
