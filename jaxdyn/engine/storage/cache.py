"""The user's cache folder: files that can be made again, each with a checksum, so that damage is noticed.

Among them is what is remembered of other files: their contents, hashed once, and again when a file may have changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from jaxdyn.engine.base.parsing import from_home, parse_json, plain_file
from jaxdyn.engine.base.reference import hash_file
from jaxdyn.errors import UsageError

__all__ = ["cache_dir", "content_of", "read_cached", "state_of", "write_cached"]

CONTENTS = "contents.json"  # in the cache: path -> state and digest
MOST_CONTENTS = 1000  # files that are remembered
SETTLED = 2 * 10**9  # nanoseconds: a younger file may change once more without another time of change, so it is not remembered


def cache_dir() -> Path:
    """The cache folder: ``$JAXDYN_CACHE``, else the system's folder for caches (``~/.cache/jaxdyn`` on Linux).

    Raises:
        UsageError: it is in a home folder that is not known.
    """
    if own := os.environ.get("JAXDYN_CACHE"):
        return from_home(own, "JAXDYN_CACHE")
    folder = user_cache_path("jaxdyn", appauthor=False)
    if not folder.is_absolute():
        raise UsageError("no home folder is known for the cache: let JAXDYN_CACHE name a folder")
    return folder


def _seal(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def read_cached(name: str) -> Any:
    """The content of a file in the cache; None if it is missing or damaged."""
    file = cache_dir() / name
    try:
        seal, _, text = file.read_text(encoding="utf-8").partition("\n")
        return parse_json(text) if seal == json.dumps(_seal(text)) else None
    except (OSError, ValueError):
        return None


def write_cached(name: str, content: Any) -> None:
    """Write a file in the cache as two lines of JSON: the content's checksum, and the content.

    An unwritable cache is ignored, since it costs only time.
    """
    from jaxdyn.engine.storage.store import atomic_write

    text, file = json.dumps(content), cache_dir() / name
    with contextlib.suppress(UsageError, OSError):
        atomic_write(file, f"{json.dumps(_seal(text))}\n{text}")


def state_of(file: Path) -> tuple[int, ...]:
    """What changes with a file's content: device, inode, size, and the times of its last modification and change.

    The time of change is the system's own: unlike that of modification, nobody can set it back.

    Raises:
        UsageError: there is no such file, or it cannot be read.
    """
    try:
        found = file.stat()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def content_of(file: Path) -> str:
    """The SHA-256 of a file's bytes, remembered in the user's cache for as long as the file stays as it is.

    Raises:
        UsageError: there is no such file, or it cannot be read.
    """
    path, began = plain_file(file).resolve(), time.time_ns()
    state = state_of(path)
    known = read_cached(CONTENTS)
    known = known if isinstance(known, dict) else {}
    match known.get(str(path)):
        case [found, str(digest)] if found == list(state):
            return digest
    try:
        digest = hash_file(path)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from None
    if state_of(path) == state and began - max(state[-2:]) > SETTLED:
        known = {**{p: entry for p, entry in known.items() if p != str(path)}, str(path): [list(state), digest]}
        write_cached(CONTENTS, dict(list(known.items())[-MOST_CONTENTS:]))
    return digest
