"""The errors a user may meet; each carries one plain sentence."""

from __future__ import annotations

from typing import Any

__all__ = ["Inconclusive", "StoreError", "UsageError", "given"]


class UsageError(ValueError):
    """Wrong input: the message names what was given and what is allowed (command line: exit code 2)."""


class StoreError(UsageError):
    """An output folder that cannot be used: not writable, full, damaged, or another job's."""


class Inconclusive(Exception):
    """Raised by a judge that cannot decide on the data it was given, e.g. a slope from one step size."""


def given(setting: Any, *names: str) -> str:
    """Fields of a setting and their values in words, for the end of a sentence that says what is allowed."""
    return "got " + ", ".join(f"{name}={getattr(setting, name)}" for name in names)
