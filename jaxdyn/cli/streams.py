"""Standard output and error as they are: without some letters, closed, or full; and Ctrl-C while a program runs.

Python hands a signal to its own code only between two of its instructions, and a compiled program without an end has none; an
exception raised there may also be swallowed. So the system's handler writes to a pipe, and a thread that reads it ends the process.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import sys
import threading
from typing import Any, NoReturn

__all__ = ["INTERRUPTED", "closed", "obey", "prepare"]

INTERRUPTED = "jaxdyn: interrupted; run the same command to resume"
RESTORED = "\r\x1b[K\x1b[?25h"  # a terminal without the line of the progress bar, with its cursor


class _Closed(io.TextIOBase):
    """A stream that was closed when the process began."""

    def write(self, text: str) -> NoReturn:
        """Say so."""
        raise OSError(9, "it is closed")


def prepare() -> None:
    """Streams that take every letter: as its code where their encoding lacks it; closed ones as such, standard error silently."""
    sys.stdout = _Closed() if sys.stdout is None else sys.stdout
    sys.stderr = open(os.devnull, "w") if sys.stderr is None else sys.stderr  # noqa: SIM115 - for the life of the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def closed(error: OSError) -> str:
    """What became of standard output, in one sentence; nothing more is written to it, also not when Python ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return f"jaxdyn: cannot write to standard output: {error.strerror or error}"


def obey() -> None:
    """Ctrl-C ends this process at once, with one sentence: also while a compiled program runs, and whatever the code catches.

    Nothing is lost: all that is written is written whole (:func:`jaxdyn.engine.store.atomic_write`).
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.signal(signal.SIGINT, _nothing)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader, writer), daemon=True).start()


def _nothing(*_: Any) -> None:
    """An exception here would come up anywhere: in a callback that cannot pass it on, or half-way through an import in C."""


def _watch(reader: socket.socket, writer: socket.socket) -> None:
    """End the process after an interruption; the writer is kept for as long as the system writes to it."""
    while reader.recv(1)[0] != signal.SIGINT:
        pass
    with contextlib.suppress(OSError, ValueError):
        os.write(2, f"{RESTORED if os.isatty(2) else ''}{INTERRUPTED}\n".encode())
    workers = sys.modules.get("multiprocessing")  # not imported: there are none
    for worker in workers.active_children() if workers else ():
        worker.kill()
    os._exit(130)
