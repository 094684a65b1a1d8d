"""Standard output and error as they are: without some letters, closed, or full; and Ctrl-C while a program runs.

Python hands a signal to its own code only between two of its instructions, and a compiled program without an end has none. The
system's handler writes at once to a pipe, which a thread reads; it ends the process if Python has not reacted.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

__all__ = ["INTERRUPTED", "closed", "obeyed", "prepare"]

INTERRUPTED = "jaxdyn: interrupted; run the same command to resume"
PATIENCE = 0.7  # seconds that Python has to react to Ctrl-C


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


@contextlib.contextmanager
def obeyed() -> Iterator[None]:
    """Ctrl-C ends the process within a second, also while a compiled program runs; a second one is not needed.

    All that is written is written whole (:func:`jaxdyn.engine.store.atomic_write`), so that nothing is lost.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    reacted = threading.Event()

    def react(*_: Any) -> NoReturn:
        reacted.set()
        raise KeyboardInterrupt

    handler, descriptor = signal.signal(signal.SIGINT, react), signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader, reacted), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(descriptor)
        signal.signal(signal.SIGINT, handler)
        writer.close()


def _watch(reader: Any, reacted: threading.Event) -> None:
    """End the process after an interruption to which the main thread does not react."""
    while signals := reader.recv(1):
        if signals[0] == signal.SIGINT and not reacted.wait(PATIENCE):
            with contextlib.suppress(OSError, ValueError):
                os.write(2, f"\n{INTERRUPTED}\n".encode())
            os._exit(130)
    reader.close()
