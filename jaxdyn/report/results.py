"""Results of a verification, stored for the report: ``result.json``, and compressed figures in ``figures.json.gz``.

The two are written one after the other. Results hold the hash of their figures, so that those of another verification, which an
interruption or a full disk can leave next to them, are not shown with them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import UsageError

__all__ = ["FIGURES", "LEFT_OUT", "RESULT", "read_results", "write_results"]

RESULT, FIGURES = "result.json", "figures.json.gz"
HASH, LEFT_OUT = "figures", "figures_left_out"  # in the results: of the figures, and a sentence that says why there are none
OTHERS = "Figures are left out: those in the folder were not drawn from these results. The same `jaxdyn verify` again draws them."
PACKING = 3  # compression level, from 1 to 9: figures shrink to a fourth, in a fifth of a second


def write_results(folder: Path, whole: Mapping[str, Any], figures: Mapping[str, str]) -> None:
    """Write the entries of all claims, and their figures as HTML by claim."""
    drawn = json.dumps(figures).encode()
    atomic_write(folder / RESULT, json.dumps({**whole, HASH: _hash(drawn)}, indent=1))
    atomic_write(folder / FIGURES, gzip.compress(drawn, PACKING, mtime=0))


def read_results(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Read the entries and figures that :func:`write_results` wrote.

    If the figures are missing or damaged, or not those of the results, there are none, and :data:`LEFT_OUT` among the results says
    so.

    Raises:
        UsageError: the folder holds no results.
    """
    try:
        whole = parse_json((folder / RESULT).read_text(encoding="utf-8"))
        claims = whole.get("claims") if isinstance(whole, dict) else None
        if not (isinstance(claims, list) and all(map(_is_entry, claims))):
            raise ValueError
    except (OSError, ValueError):
        raise UsageError(f"{folder} holds no results of `jaxdyn verify`; give the folder that was its --out") from None
    figures = _read_figures(folder / FIGURES, whole.pop(HASH, None))
    return ({**whole, LEFT_OUT: OTHERS}, {}) if figures is None else (whole, figures)


def _read_figures(file: Path, expected: Any) -> dict[str, str] | None:
    """The figures in a file; None if it is missing or damaged, or they have another hash than expected."""
    try:
        drawn = gzip.decompress(file.read_bytes()) if file.exists() else b"{}"
    except (OSError, EOFError, zlib.error):
        return None
    return {str(name): str(figure) for name, figure in parse_json(drawn).items()} if _hash(drawn) == expected else None


def _hash(drawn: bytes) -> str:
    return hashlib.sha256(drawn).hexdigest()[:20]


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("id"), str)
