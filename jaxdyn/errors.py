"""The errors a user may meet; each carries one plain sentence."""

from __future__ import annotations

from typing import Any

__all__ = ["Inconclusive", "StoreError", "UsageError", "require"]


class UsageError(ValueError):
    """Wrong input: the message names what was given and what is allowed (command line: exit code 2)."""


class StoreError(UsageError):
    """An output folder that cannot be used: not writable, full, damaged, or another job's."""


class Inconclusive(Exception):
    """Raised by a judge that cannot decide on the data it was given, e.g. a slope from one step size."""


def require(setting: Any, condition: bool, allowed: str, *names: str) -> None:
    """Refuse a setting unless the condition holds: ``field=value is not allowed: <what is>``.

    Args:
        setting: the object that has the fields.
        condition: what must be true of them.
        allowed: what is allowed, in words: ``"rate is positive"``.
        *names: the fields that the condition is about; the message shows their values.

    Raises:
        UsageError: if the condition is false.
    """
    if not condition:
        values = ", ".join(f"{name}={getattr(setting, name)}" for name in names)
        raise UsageError(f"{values} {'is' if len(names) == 1 else 'are'} not allowed: {allowed}")
