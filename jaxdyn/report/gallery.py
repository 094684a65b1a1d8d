"""Figures of a verification as files for the documents, written by ``make docs``.

The files are ``gallery.md``, with one figure per theory, and ``figures/<claim>.svg``, which the findings show, too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jaxdyn.engine.catalogue import library
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import UsageError
from jaxdyn.report.results import read_results

__all__ = ["entry", "standalone", "write"]

INTRO = """# Gallery

One figure per theory, as the report draws it at quick scale: prediction next to measurement over all runs. This page is written by
`make docs` from the results in `report`.
"""


def standalone(svg: str) -> str:
    """A figure of the report as a separate SVG file, with dark text on white.

    Raises:
        UsageError: the figure is not a drawing.
    """
    if not svg.lstrip().startswith("<svg"):
        raise UsageError("the figure could not be drawn: verify the claim again")
    size = re.search(r'viewBox="\S+ \S+ (\S+) (\S+)"', svg)
    assert size is not None, "every figure has a viewBox"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" color="#1f2328" width="{size[1]}" height="{size[2]}"'
    return re.sub(r"<svg\b", head, svg, count=1).replace(">", '><rect width="100%" height="100%" fill="#ffffff"/>', 1)


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
    claims = {c["id"]: c for c in whole["claims"]}
    named = re.findall(r"\(figures/([^)]+)\.svg\)", (docs / "findings.md").read_text())
    shown = library.shown()
    missing = [name for name in (*shown, *named) if name not in figures]
    if missing:
        raise UsageError(f"{folder} has no figure of {', '.join(missing)}: verify these claims first")
    for name in dict.fromkeys((*shown, *named)):
        atomic_write(docs / "figures" / f"{name}.svg", standalone(figures[name]))
    atomic_write(docs / "gallery.md", "\n\n".join([INTRO.strip(), *(entry(claims[name]) for name in shown)]) + "\n")
