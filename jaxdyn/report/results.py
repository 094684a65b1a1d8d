"""Results of a verification, stored for the report: ``result.json``, and compressed figures in ``figures.json.gz``.

The two are written one after the other. Results hold the hash of their figures, so that those of another verification, which an
interruption or a full disk can leave next to them, are not shown with them; and a hash of all that they say themselves, so that
a digit that changed after the run is not shown for one that was measured.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jaxdyn.engine.base.parsing import parse_json, plain_file
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import UsageError, shown

__all__ = ["FIGURES", "FORMAT", "LEFT_OUT", "RESULT", "Number", "numbers_of", "read_results", "read_whole", "write_results"]

RESULT, FIGURES = "result.json", "figures.json.gz"
FORMAT = 1  # of result.json and of what --json prints; results without a number have the first
HASH, LEFT_OUT = "figures", "figures_left_out"  # in the results: of the figures, and a sentence that says why there are none
CONTENT = "content"  # in the results: the hash of all else in them
OTHERS = "Figures are left out: those in the folder were not drawn from these results. The same `jaxdyn verify` again draws them."
PACKING = 3  # compression level, from 1 to 9: figures shrink to a fourth, in a fifth of a second
KINDS = {"checks": "check", "gates": "gate", "readings": "reading"}  # in a claim's entry

Ends = tuple[float | None, float | None]


class Number(NamedTuple):
    """A check, gate or reading of a stored claim; None stands for what is not finite, or not there.

    Args:
        kind: check, gate or reading.
        name: what is compared or read.
        value: the number.
        interval: of the value, if it is estimated from runs.
        bound: what it is compared with; None for readings.
        passed: whether a check or gate passes; None if it is undecided, or a reading.
    """

    kind: str
    name: str
    value: float | None
    interval: Ends | None
    bound: Ends | None
    passed: bool | None


def write_results(folder: Path, whole: Mapping[str, Any], figures: Mapping[str, str]) -> None:
    """Write the entries of all claims, and their figures as HTML by claim."""
    drawn = json.dumps(figures).encode()
    held = {**whole, HASH: _hash(drawn)}
    atomic_write(folder / RESULT, json.dumps({**held, CONTENT: _content(parse_json(json.dumps(held)))}, indent=1))
    atomic_write(folder / FIGURES, gzip.compress(drawn, PACKING, mtime=0))


def read_results(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Read the entries and figures that :func:`write_results` wrote.

    If the figures are missing or damaged, or not those of the results, there are none, and :data:`LEFT_OUT` among the results says
    so.

    Raises:
        UsageError: the folder holds no results, those of a newer version, or some that changed after they were written.
    """
    try:
        whole = _entries(parse_json((folder / RESULT).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        raise UsageError(f"{folder} holds no results of `jaxdyn verify`; give the folder that was its --out") from None
    _check(folder / RESULT, whole)
    figures = _read_figures(folder / FIGURES, whole.pop(HASH, None))
    return ({**whole, LEFT_OUT: OTHERS}, {}) if figures is None else (whole, figures)


def read_whole(path: Path) -> dict[str, Any]:
    """The stored JSON object of a verification, without figures.

    Args:
        path: the ``--out`` of a verification, its ``result.json``, or a file with what ``--json`` printed.

    Raises:
        UsageError: it is missing, damaged or changed, holds something else, or was written by a newer version.
    """
    file = path / RESULT if path.is_dir() else path
    if not path.exists():
        raise UsageError(f"{path} does not exist; give the --out of `jaxdyn verify`, or the {RESULT} in it")
    if not file.exists():
        called = "give the folder that was its --out, or, as jd.verify(out=...) stores runs alone, what that returned"
        raise UsageError(f"{path} holds no results of `jaxdyn verify`; {called}")
    if file.suffix.lower() in (".html", ".htm"):
        raise UsageError(f"{path} is a page, which does not hold the results; give the folder that was --out, or its {RESULT}")
    try:
        parsed = parse_json(plain_file(file).read_text(encoding="utf-8"))
    except UsageError:
        raise
    except ValueError:
        raise UsageError(f"{file} is damaged: it is not JSON") from None
    if isinstance(parsed, dict):
        _check(file, parsed)
    try:
        return _entries(parsed)
    except ValueError:
        raise UsageError(f"{file} holds no results of `jaxdyn verify`") from None


def numbers_of(entry: Mapping[str, Any]) -> list[Number]:
    """The checks, gates and readings of a claim's entry.

    Raises:
        UsageError: the entry is damaged.
    """
    try:
        return [
            Number(
                kind,
                one["name"] if isinstance(one["name"], str) else _damaged(),
                _number(one["value"]),
                _ends(one.get("interval")),
                _ends(one.get("bound")),
                one["passed"] if isinstance(one.get("passed"), bool) else None,
            )
            for name, kind in KINDS.items()
            for one in entry.get(name) or []
        ]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UsageError(f"the entry of {shown(entry['id'])} is damaged: its checks cannot be read") from None


def _number(value: Any) -> float | None:
    return value if value is None or (isinstance(value, int | float) and not isinstance(value, bool)) else _damaged()


def _ends(value: Any) -> Ends | None:
    if value is None:
        return None
    low, high = map(_number, value)
    return low, high


def _damaged() -> Any:
    raise ValueError


def _entries(parsed: Any) -> dict[str, Any]:
    """The results, if that is what they are."""
    claims = parsed.get("claims") if isinstance(parsed, dict) else None
    if not (isinstance(parsed, dict) and isinstance(claims, list) and all(map(_is_entry, claims))):
        raise ValueError
    return parsed


def _check(file: Path, whole: dict[str, Any]) -> None:
    """Refuse results of a newer version, and such as are not what was written; what ``--json`` printed has no hash."""
    written = whole.get("format", FORMAT)
    if written != FORMAT:
        raise UsageError(f"{file} was written in format {shown(written)}, this version reads format {FORMAT}; use a newer jaxdyn")
    if CONTENT in whole and whole.pop(CONTENT) != _content(whole):
        raise UsageError(
            f"{file} was changed after it was written, so its numbers may be of no run; the same `jaxdyn verify` renews it"
        )


def _read_figures(file: Path, expected: Any) -> dict[str, str] | None:
    """The figures in a file; None if it is missing or damaged, or they have another hash than expected."""
    try:
        drawn = gzip.decompress(file.read_bytes()) if file.exists() else b"{}"
    except (OSError, EOFError, zlib.error):
        return None
    return {str(name): str(figure) for name, figure in parse_json(drawn).items()} if _hash(drawn) == expected else None


def _hash(drawn: bytes) -> str:
    return hashlib.sha256(drawn).hexdigest()[:20]


def _content(whole: Mapping[str, Any]) -> str:
    """The hash of an object that was read from JSON, whatever the order and layout in which it was written."""
    return _hash(json.dumps(whole, sort_keys=True).encode())


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("id"), str)
