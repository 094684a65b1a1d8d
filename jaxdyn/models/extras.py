"""Libraries of the extra ``models``, imported when they are first used."""

from __future__ import annotations

import importlib
from typing import Any

from jaxdyn.errors import missing

__all__ = ["library"]


def library(name: str) -> Any:
    """The module of this name.

    Raises:
        UsageError: if it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise missing("reading or writing published models", name, "models") from None
