"""The gallery of the documentation site, and the figures of claims that its other pages show.

They are drawn by a verification, which ``make docs`` runs; no file of them is kept. A page names a figure in a comment,
``<!-- figure toy.law: What is on it -->``, which the site replaces by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxdyn.engine.catalogue import library
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.errors import UsageError
from jaxdyn.plotting.svg import bare
from jaxdyn.report.formatting import ended
from jaxdyn.report.results import RESULT, read_results

__all__ = ["entry", "mark", "names", "pages", "standalone", "with_figures"]

PAGE = "gallery.md"
INTRO = """# Gallery

One figure per theory, as the report draws it at quick scale: prediction next to measurement over all runs.
"""
NONE = "`make docs` draws the figures. This site was built without it."
MARK = re.compile(r"<!-- figure (?P<claim>[\w.]+): (?P<shown>.*?) -->")


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
        f"![{claim['id']}]({_file(claim['id'])})",
        claim.get("caption") or "",
    ]
    return "\n\n".join([*filter(None, lines), f"`{claim['command']}`"])


def mark(claim: Claim) -> str:
    """A claim's figure in a page, as the comment that stands for it, with its title and caption."""
    caption = f" {claim.caption}" if claim.caption else ""
    return f"<!-- figure {claim.id}: {claim.title} -->\n\n**{ended(claim.title)}**{caption} (`{claim.id}`)"


def with_figures(page: str, drawn: set[str], up: str) -> str:
    """A page with figures in place of the comments that name them; comments whose figure is not drawn stay.

    Args:
        page: Markdown.
        drawn: the claims whose figures there are.
        up: the way from the page to the documents' folder, such as ``../``; empty for a page in it.
    """

    def figure(match: re.Match[str]) -> str:
        if match["claim"] not in drawn:
            return match[0]
        return f"![{match['shown']}]({up}{_file(match['claim'])})"

    return MARK.sub(figure, page)


def names(docs: Path) -> list[str]:
    """The claims whose figures the site shows: those of the gallery, and those that ``findings.md`` names."""
    findings = docs / "findings.md"
    named = [match["claim"] for match in MARK.finditer(findings.read_text(encoding="utf-8"))] if findings.is_file() else []
    return list(dict.fromkeys((*library.shown(), *named)))


def pages(results: Path, docs: Path) -> dict[str, str]:
    """The gallery and the files of all figures, by their places in the documents' folder.

    Args:
        results: the ``--out`` of a verification of the claims that :func:`names` gives; without results there are no figures.
        docs: the documents' folder.

    Raises:
        UsageError: a figure is missing, though its claim was not skipped.
    """
    if not (results / RESULT).is_file():
        return {PAGE: f"{INTRO}\n{NONE}\n"}
    whole, figures = read_results(results)
    claims = {claim["id"]: claim for claim in whole["claims"]}
    drawn = dict(_drawn(results, names(docs), claims, figures))
    texts = (entry(claims[name]) for name in library.shown() if name in drawn)
    return {PAGE: "\n\n".join([INTRO.strip(), *texts]) + "\n"} | {_file(name): svg for name, svg in drawn.items()}


def _drawn(results: Path, wanted: list[str], claims: dict[str, Any], figures: Any) -> Iterator[tuple[str, str]]:
    for name in wanted:
        if name in figures and name in claims:
            yield name, standalone(figures[name])
        elif claims.get(name, {}).get("verdict") != "skipped":  # the figure may be of an earlier call
            raise UsageError(f"{results} has no figure of {name}: verify this claim first")


def _file(name: str) -> str:
    return f"figures/{name}.svg"
