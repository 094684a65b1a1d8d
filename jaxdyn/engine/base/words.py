"""Counts and durations in words."""

from __future__ import annotations

__all__ = ["duration", "plural"]


def plural(count: int, noun: str) -> str:
    """A count with its noun: ``1 program``, ``2 programs``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """A rough length of time: ``under a minute``, ``about 9 min``, ``about 3 h``."""
    if seconds < 60:
        return "under a minute"
    return f"about {seconds / 60:.0f} min" if seconds < 90 * 60 else f"about {seconds / 3600:.0f} h"
