"""The user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path

__all__ = ["cache_dir"]


def cache_dir() -> Path:
    """``$JAXDYN_CACHE``, else the system's folder for caches (``~/.cache/jaxdyn`` on Linux)."""
    if own := os.environ.get("JAXDYN_CACHE"):
        return Path(own)
    return user_cache_path("jaxdyn", appauthor=False)
