"""Counts, durations and places in words, and the formulas in a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["FORMULAS", "duration", "left_out", "place", "plural"]

# splits a text such that every second piece is LaTeX between dollar signs, with them, or code between backticks
FORMULAS = re.compile(r"(\$\$.+?\$\$|(?<!\\)\$.+?(?<!\\)\$|`[^`]+`)", re.S)
IRREGULAR = {"axis": "axes", "vertex": "vertices"}


def plural(count: int, noun: str) -> str:
    """A count with its noun: ``1 program``, ``2,500 programs``, ``3 entries``, ``4 axes``."""
    if count == 1:
        return f"1 {noun}"
    stem, last = noun[: -len(word := noun.split()[-1])], IRREGULAR.get(word)
    ending = "es" if re.search("(s|x|ch|sh)$", word) else "s"
    return f"{count:,} {stem}{last or re.sub('(?<![aeo])y$', 'ie', word) + ending}"


def place(coordinates: Mapping[str, Any], text: Callable[[Any], str] = str) -> str:
    """The coordinates of an entry in words: ``seed 3, lr = 0.1, “purity”``.

    A label that is a word says itself what it is; the name of its axis (``quantity``) does not help.

    Args:
        coordinates: value by axis.
        text: writes a number.
    """
    return ", ".join(_coordinate(axis, value, text) for axis, value in coordinates.items())


def _coordinate(axis: str, value: Any, text: Callable[[Any], str]) -> str:
    if axis == "seed":
        return f"seed {value}"
    word = isinstance(value, str) and re.search("[a-z]{3}", value) is not None  # no symbol, no size, no group's name
    return f"“{value}”" if word else f"{axis} = {value if isinstance(value, str) else text(value)}"


def duration(seconds: float) -> str:
    """A rough length of time: ``under a minute``, ``about 9 min``, ``about 3 h``."""
    if seconds < 60:
        return "under a minute"
    return f"about {seconds / 60:.0f} min" if seconds < 90 * 60 else f"about {seconds / 3600:.0f} h"


def left_out(of: int, diverged: int, outside: int) -> str:
    """How many runs are not judged, and why; empty if all are: ``11 of 16 runs not judged: 10 diverged, 1 outside``."""
    reasons = ", ".join(f"{number:,} {word}" for number, word in ((diverged, "diverged"), (outside, "outside")) if number)
    return f"{diverged + outside:,} of {plural(of, 'run')} not judged: {reasons}" if reasons else ""
