"""Counts and durations in words, and the formulas in a text."""

from __future__ import annotations

import re

__all__ = ["FORMULAS", "duration", "left_out", "plural"]

# splits a text such that every second piece is LaTeX between dollar signs, with them, or code between backticks
FORMULAS = re.compile(r"(\$\$.+?\$\$|(?<!\\)\$.+?(?<!\\)\$|`[^`]+`)", re.S)


def plural(count: int, noun: str) -> str:
    """A count with its noun: ``1 program``, ``2 programs``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """A rough length of time: ``under a minute``, ``about 9 min``, ``about 3 h``."""
    if seconds < 60:
        return "under a minute"
    return f"about {seconds / 60:.0f} min" if seconds < 90 * 60 else f"about {seconds / 3600:.0f} h"


def left_out(of: int, diverged: int, outside: int) -> str:
    """How many runs are not judged, and why; empty if all are: ``11 of 16 runs not judged: 10 diverged, 1 outside``."""
    reasons = ", ".join(f"{number:,} {word}" for number, word in ((diverged, "diverged"), (outside, "outside")) if number)
    return f"{diverged + outside:,} of {plural(of, 'run')} not judged: {reasons}" if reasons else ""
