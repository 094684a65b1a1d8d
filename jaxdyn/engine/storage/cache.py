"""The user's cache folder: files that can be made again, each with a checksum, so that damage is noticed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from jaxdyn.engine.base.parsing import from_home, parse_json
from jaxdyn.errors import UsageError

__all__ = ["cache_dir", "read_cached", "write_cached"]


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
