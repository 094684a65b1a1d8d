"""``jaxdyn explore``: serves a claim's page on this machine."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Mapping, Sequence
from typing import Any

from jaxdyn.explorer.knobs import text_of
from jaxdyn.explorer.runs import Explorer, Move, one_claim

__all__ = ["can_open", "explore_command", "start_of"]


def start_of(sets: Mapping[str, Any], seeds: str | None) -> Move:
    """The knobs' first positions, from ``--set`` and ``--seeds``."""
    return Move({name: text_of(value) for name, value in sets.items()}, seeds)


def explore_command(
    pattern: str,
    *,
    sets: Mapping[str, Any],
    seeds: str | None,
    scale: str,
    load: Sequence[str],
    host: str,
    port: int | None,
    browser: bool,
) -> int:
    """Serve the page of a claim until Ctrl-C, or a request to end.

    Raises:
        UsageError: no such claim, field or value, or an address on which nothing can be served.
    """
    from jaxdyn.explorer.server import Server

    explorer, start = Explorer(one_claim(pattern, load), scale, load), start_of(sets, seeds)
    explorer.task(start)  # reports a wrong field or value at once
    server = Server(explorer, start, host, port)
    print(f"{explorer.claim.id}: {server.url}  (Ctrl-C ends it)", flush=True)
    if server.token:
        print("Anyone with this address can run this claim here: do not share it.", file=sys.stderr, flush=True)
    if threading.current_thread() is threading.main_thread():
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _end)
    server.serve(lambda: _open(server.url) if browser else None)
    return 0


def _end(*_: Any) -> None:
    """End the process at once, on Ctrl-C or a request to end: nothing is stored, and a running program cannot be interrupted."""
    os._exit(0)


def _open(url: str) -> None:
    if can_open():
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def can_open() -> bool:
    """Whether there is a screen for a browser; without one, a text browser would take over the terminal."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
