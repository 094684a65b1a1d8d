"""The calls of ``jaxdyn verify`` with one ``--out``, in its file ``history.jsonl``: one line in JSON per call, the oldest first.

The file is written as a whole, so that it is the old one or the new one. Lines that cannot be read are left out, which
:func:`damage` says: a damaged history never costs a run.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import StoreError
from jaxdyn.wording import plural

__all__ = ["HISTORY", "MOST", "call", "damage", "earlier_calls", "read_history", "write_history"]

Call: TypeAlias = "dict[str, Any]"
HISTORY = "history.jsonl"
MOST = 200  # calls that are kept
TYPES: dict[str, Any] = {  # of what a call consists of
    "date": str,
    "commit": str | None,
    "command": str,
    "claims": int,
    "as_expected": int,
    "seconds": int | float,
    "unfinished": str | None,
}
LARGEST = 2**20  # bytes of a file that is read: of any other, jaxdyn wrote none


def call(whole: Mapping[str, Any], command: str) -> Call:
    """One call, from the JSON object of its verification.

    Args:
        whole: the object.
        command: what was typed.
    """
    environment, judged = whole["environment"], [entry for entry in whole["claims"] if entry["verdict"] != "skipped"]
    return {
        "date": environment["date"],
        "commit": environment["commit"],
        "command": command,
        "claims": len(judged),
        "as_expected": sum(entry["verdict"] == entry["expected"] for entry in judged),
        "seconds": whole["seconds"],
        "unfinished": whole.get("unfinished"),
    }


def read_history(folder: Path) -> list[Call]:
    """The calls in a folder, the oldest first; none if the file is missing or cannot be read."""
    return [found for line in _lines(folder) or () if (found := _read(line)) is not None][-MOST:]


def damage(folder: Path) -> str:
    """What a folder's history has lost, in a sentence; empty if nothing."""
    lines = _lines(folder)
    if lines is None:
        return f"{folder / HISTORY} cannot be read: the earlier calls are left out, and the next call begins it anew"
    lost = sum(_read(line) is None for line in lines)
    return f"{folder / HISTORY}: {plural(lost, 'damaged line')} left out, so the list of earlier calls has gaps" if lost else ""


def _lines(folder: Path) -> list[str] | None:
    """The lines of a folder's history; None if it is not to be read, or too long to be one of ours."""
    try:
        file = folder / HISTORY
        if not file.exists():
            return []
        if not file.is_file() or file.stat().st_size > LARGEST:
            return None
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None


def write_history(folder: Path, calls: Sequence[Call]) -> None:
    """Write the last :data:`MOST` calls; where that is not possible, the results of the run still count."""
    with contextlib.suppress(StoreError):
        atomic_write(folder / HISTORY, "".join(f"{json.dumps(one)}\n" for one in calls[-MOST:]))


def earlier_calls(folder: Path, whole: Mapping[str, Any]) -> list[Call]:
    """The calls before that of these results, the latest first."""
    calls, environment = read_history(folder), whole.get("environment")
    date = environment.get("date") if isinstance(environment, Mapping) else None
    if calls and (calls[-1]["date"], calls[-1]["seconds"]) == (date, whole.get("seconds")):
        calls.pop()
    return calls[::-1]


def _read(line: str) -> Call | None:
    """The call of a line; None if it is damaged."""
    try:
        found = parse_json(line)
    except ValueError:
        return None
    whole = isinstance(found, dict) and all(isinstance(found.get(name), kind) for name, kind in TYPES.items())
    return {name: found[name] for name in TYPES} if whole and isinstance(found, dict) else None
