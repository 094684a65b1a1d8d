"""The errors a user may meet; each carries one plain sentence."""

from __future__ import annotations

__all__ = ["Inconclusive", "StoreError", "UsageError"]


class UsageError(ValueError):
    """Wrong input: the message names what was given and what is allowed (command line: exit code 2)."""


class StoreError(UsageError):
    """An output folder that cannot be used: not writable, full, damaged, or another job's."""


class Inconclusive(Exception):
    """Raised by a judge that cannot decide on the data it was given, e.g. a slope from one step size."""
