"""Figures of a verification as files for the documents, written by ``make docs``.

The files are ``gallery.md``, with one figure per theory, and ``figures/<claim>.svg``, which the findings show, too. What each
figure was made from is in ``figures/made_from.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.engine.catalogue import library
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import UsageError
from jaxdyn.plotting.svg import bare
from jaxdyn.report.results import read_results

__all__ = ["entry", "names", "read_origins", "standalone", "write", "write_figures"]

ORIGINS = "made_from.json"  # in the folder of the figures

INTRO = """# Gallery

One figure per theory, as the report draws it at quick scale: prediction next to measurement over all runs. This page is written by
`make docs` from the results in `report`.
"""


def standalone(svg: str) -> str:
    """A figure of the report as a separate SVG file, with dark text on white.

    Raises:
        UsageError: the figure is not a drawing.
    """
    size = re.search(r'viewBox="\S+ \S+ (\S+) (\S+)"', svg)
    if not svg.lstrip().startswith("<svg") or size is None:
        raise UsageError("the figure could not be drawn: verify the claim again")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" color="#1f2328" width="{size[1]}" height="{size[2]}"'
    return re.sub(r"<svg\b", head, bare(svg), count=1).replace(">", '><rect width="100%" height="100%" fill="#ffffff"/>', 1)


def entry(claim: dict[str, Any]) -> str:
    """One figure of the gallery: its claim's title, statement, caption and command."""
    lines = [
        f"## {claim['title']}",
        f"`{claim['id']}`: {claim['statement']}",
        f"![{claim['id']}](figures/{claim['id']}.svg)",
        claim.get("caption") or "",
    ]
    return "\n\n".join([*filter(None, lines), f"`{claim['command']}`"])


def write(folder: Path, docs: Path) -> None:
    """Write the gallery and the figures that the documents show.

    Args:
        folder: the ``--out`` of a verification.
        docs: the documents' folder; ``findings.md`` names the other figures.

    Raises:
        UsageError: a figure that the documents show is not among the results.
    """
    whole, figures = read_results(folder)
    claims, wanted = {c["id"]: c for c in whole["claims"]}, names(docs)
    missing = [name for name in wanted if name not in figures or name not in claims]  # the figure may be of an earlier call
    if missing:
        raise UsageError(f"{folder} has no figure of {', '.join(missing)}: verify these claims first")
    write_figures(docs, {name: figures[name] for name in wanted}, {name: claims[name].get("made_from") for name in wanted})
    texts = (entry(claims[name]) for name in library.shown())
    atomic_write(docs / "gallery.md", "\n\n".join([INTRO.strip(), *texts]) + "\n")


def names(docs: Path) -> list[str]:
    """The claims whose figures the documents show: those of the gallery, and those that ``findings.md`` names."""
    named = re.findall(r"\(figures/([^)]+)\.svg\)", (docs / "findings.md").read_text(encoding="utf-8"))
    return list(dict.fromkeys((*library.shown(), *named)))


def write_figures(docs: Path, figures: Mapping[str, str], origins: Mapping[str, Any]) -> None:
    """Write figures by claim, and add what they were made from to the record of all figures."""
    for name, svg in figures.items():
        atomic_write(docs / "figures" / f"{name}.svg", standalone(svg))
    whole = {**read_origins(docs), **origins}
    atomic_write(docs / "figures" / ORIGINS, json.dumps(dict(sorted(whole.items())), indent=1) + "\n")


def read_origins(docs: Path) -> dict[str, Any]:
    """What the documents' figures were made from, by claim; empty where the record is missing or damaged."""
    try:
        read = parse_json((docs / "figures" / ORIGINS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}
