"""The user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_dir"]


def cache_dir() -> Path:
    """``$JAXDYN_CACHE``, else ``$XDG_CACHE_HOME/jaxdyn``, else ``~/.cache/jaxdyn``."""
    if own := os.environ.get("JAXDYN_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jaxdyn"
