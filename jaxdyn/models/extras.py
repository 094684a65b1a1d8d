"""Libraries of the extra ``models``, imported when they are first used."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from jaxdyn.errors import missing

__all__ = ["library", "panics"]


def library(name: str) -> Any:
    """The module of this name.

    Raises:
        UsageError: if it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise missing("reading or writing published models", name, "models") from None


@contextlib.contextmanager
def panics() -> Iterator[None]:
    """Within it, a panic of a library that is written in Rust is an error like any other: it would pass by ``except Exception``.

    Raises:
        RuntimeError: for a panic, with its words.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise RuntimeError(f"the library stopped: {error}") from None
