"""Parsing of values that were typed on the command line or in a page; wrong ones are refused in one sentence."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxdyn.errors import UsageError, shown

__all__ = [
    "RANGE",
    "Span",
    "check_span",
    "from_home",
    "parse_json",
    "parse_seeds",
    "parse_sets",
    "parse_span",
    "parse_values",
    "plain_digits",
    "plain_file",
    "quoted",
    "typed",
    "vanishes",
    "whole_number",
]

RANGE = "FIELD=LOW:HIGH or FIELD=LOW:HIGH:log"
VALUES = "FIELD=VALUE or FIELD=V1,V2,…, and a value with a comma in double quotes"
ONE_VALUE = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>(?!")[^,\n\r]*?))\s*(?:(?P<comma>,)|$)')


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


@dataclasses.dataclass(frozen=True)
class Span:
    """A range of numbers, ``LOW:HIGH``, with ``:log`` if its steps are factors, and ``:N`` for its number of values."""

    low: float
    high: float
    log: bool = False
    count: int | None = None


def parse_span(text: str, given: str, allowed: str = RANGE) -> Span:
    """A range from text, ``LOW:HIGH[:log][:N]``; its ends are checked by :func:`check_span`.

    Args:
        text: the range.
        given: the option, the field and the range, for messages.
        allowed: what to write instead, for messages.

    Raises:
        UsageError: anything else.
    """
    low, *others = (part.strip() for part in text.split(":"))
    high, *others = others or [""]
    log = others[:1] == ["log"]
    count = others[log:]
    try:
        ends = float(plain_digits(low)), float(plain_digits(high))
        number = int(plain_digits(count[0])) if count else None
    except ValueError:
        raise UsageError(f"{given} is not allowed: write {allowed}") from None
    if any(map(vanishes, (low, high))):
        raise UsageError(f"{given} is not allowed: float64 holds numbers of size from 2.2e-308, and 0")
    if len(count) > 1:
        raise UsageError(f"{given} is not allowed: write {allowed}")
    return Span(ends[0], ends[1], log, number)


def check_span(given: str, low: float, high: float, log: bool) -> None:
    """Refuse ends that make no range.

    Raises:
        UsageError: they are not finite, not in order, too far apart, or a logarithmic range does not start above 0.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(f"{given} is not allowed: a range goes from a number to a larger one")
    if not (log or math.isfinite(high - low)):
        raise UsageError(f"{given} is not allowed: the difference of its ends is more than float64 holds")
    if log and low <= 0:
        raise UsageError(f"{given} is not allowed: a logarithmic range starts above 0")


def parse_sets(items: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """Fields from text: ``FIELD=V1,V2`` gives a list (an axis), ``FIELD=V`` one value, ``FIELD=V,`` a list of one value.

    The setting converts types. Commas and blanks within double quotes belong to a value: ``text="a,b.txt"``.
    """
    fields: dict[str, Any] = {}
    for item in items:
        name, equals, text = item.partition("=")
        values, listed = _listed(text)
        if not equals or not name.strip() or not values:
            raise UsageError(f"{option} {typed(item)} is not allowed: write {VALUES}")
        if name.strip() in fields:
            twice = f"{shown(name)} is given twice; write all its values behind one {option}, with commas"
            raise UsageError(f"{option} {typed(item)} is not allowed: {twice}")
        fields[name.strip()] = values if listed else values[0]
    return fields


def parse_values(text: str) -> list[str]:
    """Values with commas between them; one with a comma, a quote, or blanks at its ends is in double quotes.

    None if a quote is not closed, or if there is no value between two commas.
    """
    return _listed(text)[0]


def _listed(text: str) -> tuple[list[str], bool]:
    """The values of a text, and whether it has a comma, so that they are a list."""
    values, rest, comma = list[str](), text, False
    while rest.strip() or not (values or comma):
        found = ONE_VALUE.match(rest)
        if found is None or not (found["quoted"] is not None or found["plain"]):
            return [], False
        values.append(found["plain"] if found["quoted"] is None else found["quoted"].replace('""', '"'))
        rest, comma = rest[found.end() :], comma or bool(found["comma"])
    return values, comma


def quoted(value: str) -> str:
    """A value as :func:`parse_values` reads it back."""
    plain = value and value == value.strip() and not any(sign in value for sign in ',"\n\r')
    return value if plain else '"' + value.replace('"', '""') + '"'


def whole_number(text: str, name: str, least: int, most: float = math.inf) -> int:
    """A whole number from text, between ``least`` and ``most``."""
    try:
        number = int(plain_digits(text))
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        upper = "" if number < least else f" and at most {most}"
        raise UsageError(f"{name} {typed(text)} is not allowed: it is a whole number of at least {least}{upper}")
    return number


def plain_digits(text: str) -> str:
    """A number's text, for ``int`` or ``float``, which would also take ``1_0`` and the digits of other scripts.

    Raises:
        ValueError: it has one of these.
    """
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return text


def vanishes(text: str) -> bool:
    """Whether a number's text is zero as a float, although the number is not zero: ``1e-400``."""
    return float(text) == 0 and any(digit in "123456789" for digit in text.lower().split("e")[0])


def parse_json(text: str | bytes) -> Any:
    """The content of a text in JSON.

    Raises:
        ValueError: it is not JSON, or nested deeper than Python can follow.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def from_home(path: str | os.PathLike[str], variable: str = "") -> Path:
    """A path that somebody gave; ``~``, which shells do not expand within ``--out=~/x``, is the home folder.

    Args:
        path: the path.
        variable: the environment variable that holds it.

    Raises:
        UsageError: nobody knows the home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        whose = Path(path).parts[0]
        given = f"{variable}={shown(path)}" if variable else shown(path)
        raise UsageError(f"{given} is not allowed: no home folder is known for {whose}; write the whole path") from None


def plain_file(path: Path) -> Path:
    """The path, unless something other than a plain file lies there: a device may have no end, a pipe no beginning.

    Raises:
        UsageError: it is a folder, a pipe or a device.
    """
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} cannot be read: it is no plain file")
    return path


def typed(text: str) -> str:
    """Typed text as a message shows it: on one line, cut if it is long, in quotes if it is blank."""
    return shown(text) if text.strip() else repr(text)
