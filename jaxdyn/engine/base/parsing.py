"""Parsing of values that were typed on the command line or in a page; wrong ones are refused in one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jaxdyn.errors import UsageError, shown

__all__ = ["parse_seeds", "parse_sets", "typed", "whole_number"]


def parse_seeds(text: str | None) -> int | range | None:
    """Seeds from text: ``N`` is a number of seeds, ``FROM:TO`` a range, None each claim's own."""
    if text is None:
        return None
    if ":" in text:
        start, _, stop = text.partition(":")
        try:
            first, last = whole_number(start, "FROM", 0), whole_number(stop, "TO", 1)
        except UsageError as error:
            allowed = "write FROM:TO with whole numbers, FROM at least 0 and below TO"
            raise UsageError(f"--seeds {typed(text)} is not allowed: {allowed}") from error
        if last <= first:
            raise UsageError(f"--seeds {typed(text)} is not allowed: the range holds no seed; write FROM:TO with FROM below TO")
        return range(first, last)
    return whole_number(text, "--seeds", 1)


def parse_sets(items: Sequence[str]) -> dict[str, Any]:
    """Fields from text: ``FIELD=V1,V2`` gives a list (an axis), ``FIELD=V`` one value; the setting converts types."""
    fields: dict[str, Any] = {}
    for item in items:
        name, equals, text = item.partition("=")
        values = [v.strip() for v in text.split(",") if v.strip()]
        if not equals or not name.strip() or not values:
            raise UsageError(f"--set {typed(item)} is not allowed: write FIELD=VALUE or FIELD=V1,V2,…")
        if name.strip() in fields:
            twice = f"{shown(name)} is given twice; write all its values behind one --set, with commas"
            raise UsageError(f"--set {typed(item)} is not allowed: {twice}")
        fields[name.strip()] = values if len(values) > 1 else values[0]
    return fields


def whole_number(text: str, name: str, least: int, most: float = math.inf) -> int:
    """A whole number from text, between ``least`` and ``most``."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        upper = "" if number < least else f" and at most {most}"
        raise UsageError(f"{name} {typed(text)} is not allowed: it is a whole number of at least {least}{upper}")
    return number


def typed(text: str) -> str:
    """Typed text as a message shows it: on one line, cut if it is long, in quotes if it is blank."""
    return shown(text) if text.strip() else repr(text)
