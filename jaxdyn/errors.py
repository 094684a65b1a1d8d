"""The errors a user may meet; each carries one plain sentence."""

from __future__ import annotations

__all__ = ["Inconclusive", "UsageError"]


class UsageError(ValueError):
    """Wrong input: the message names what was given and what is allowed (command line: exit code 2)."""


class Inconclusive(Exception):
    """Raised by a judge that cannot decide on the data it was given, e.g. a slope from one step size."""
