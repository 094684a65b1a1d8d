"""Results of a verification, stored for the report: ``result.json``, and compressed figures in ``figures.json.gz``."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import UsageError

__all__ = ["FIGURES", "RESULT", "read_results", "write_results"]

RESULT, FIGURES = "result.json", "figures.json.gz"
PACKING = 3  # compression level, from 1 to 9: figures shrink to a fourth, in a fifth of a second


def write_results(folder: Path, whole: Mapping[str, Any], figures: Mapping[str, str]) -> None:
    """Write the entries of all claims, and their figures as HTML by claim."""
    atomic_write(folder / RESULT, json.dumps(whole, indent=1))
    atomic_write(folder / FIGURES, gzip.compress(json.dumps(figures).encode(), PACKING, mtime=0))


def read_results(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Read the entries and figures that :func:`write_results` wrote.

    Raises:
        UsageError: the folder holds no results.
    """
    try:
        whole = parse_json((folder / RESULT).read_text(encoding="utf-8"))
        figures = parse_json(gzip.decompress((folder / FIGURES).read_bytes()))
        claims = whole.get("claims") if isinstance(whole, dict) else None
        if not (isinstance(claims, list) and isinstance(figures, dict) and all(map(_is_entry, claims))):
            raise ValueError
    except (OSError, ValueError, EOFError):
        raise UsageError(f"{folder} holds no results of `jaxdyn verify`; give the folder that was its --out") from None
    return whole, {str(name): str(figure) for name, figure in figures.items()}


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("id"), str)
