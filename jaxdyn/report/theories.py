"""One page per theory for the documents, made from its title page, claims, figures, studies and maps; written by ``make docs``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jaxdyn.engine.catalogue import library
from jaxdyn.engine.catalogue.registry import topic
from jaxdyn.engine.catalogue.theory import AtlasMap
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.report import atlas, catalogue, gallery, studies
from jaxdyn.report.chapters import by_chapter
from jaxdyn.report.formatting import ended
from jaxdyn.wording import plural

__all__ = ["contents", "equations", "page", "pages"]

INTRO = """# Theories

One page per line of work: what it says, on which networks, its equations, its claims with their verdicts, and what did not hold.
`jaxdyn show CLAIM` prints each claim in full. These pages are written by `make docs` from the theories' own files.
"""
ROLE, MATH = re.compile(r":math:`([^`]*)`"), re.compile(r"^ *\.\. math::(.*(?:\n(?: +\S.*)?$)*)", re.M)


def pages(claims: Sequence[Claim], root: Path) -> dict[str, str]:
    """The text of every page by its name, the table of contents as ``index``.

    Args:
        claims: all claims.
        root: the checkout, which has the documents' figures and the experiments.
    """
    theories = sorted({c.theory for c in claims if library.is_shipped(c.theory)})
    mine = {name: [c for c in claims if c.theory == name] for name in theories}
    return {"index": contents(mine)} | {name: page(name, mine[name], root) for name in theories}


def contents(claims: dict[str, list[Claim]]) -> str:
    """A table of the theories with a link to each page."""
    rows = ["| theory | what it is | claims |", "|---|---|--:|"]
    rows += [f"| [`{name}`]({name}.md) | {library.theory(name).title} | {len(own)} |" for name, own in claims.items()]
    return f"{INTRO}\n" + "\n".join(rows) + "\n"


def page(name: str, claims: Sequence[Claim], root: Path) -> str:
    """One theory's page: summary, papers, equations, claims by chapter, failures, open questions, studies, maps, figures."""
    about = library.theory(name)
    parts = [f"# {about.title}", about.about]
    parts += ["## Networks and data", about.setup] if about.setup else []
    parts += ["## Papers", "\n".join(f"- [{p.title}]({p.url}), {p.authors}, {p.venue}" for p in library.papers(name))]
    parts += _section("Equations", equations(name))
    parts += ["## Claims", *_tables(name, claims)]
    parts += _section("What does not hold as printed", (_refuted(c, claims) for c in claims if c.counted == "misprint"))
    parts += _section("What does not hold beyond print", (_refuted(c, claims) for c in claims if c.counted == "beyond print"))
    parts += _section("Open questions", (_measured(c) for c in claims if c.expected == "measured"))
    parts += _section("At paper scale", _studies(claims))
    parts += _section("Where it holds", (_map(one, root) for one in library.maps(name)))
    parts += _section("Figures", _figures(claims, root))
    parts += ["## Run it", *_commands(name, claims, root)]
    return "\n\n".join(parts) + "\n"


def _section(title: str, parts: Any) -> list[str]:
    """A section with its heading; empty if it has no parts."""
    filled = [part for part in parts if part]
    return [f"## {title}", *filled] if filled else []


def _link(claim: Claim) -> str:
    """A claim's title, linked to its file."""
    return catalogue.link(claim, "../../")


def _tables(name: str, claims: Sequence[Claim]) -> Iterator[str]:
    """Tables of the claims, one per chapter."""
    for chapter, group in by_chapter(library.theory(name), ((topic(c), c) for c in claims)).items():
        rows = ["| claim | id | expected | evidence |", "|---|---|---|---|"]
        rows += [f"| {_link(c)} | `{c.id}` | {c.counted} | {c.evidence} |" for c in group]
        if chapter:
            yield f"### {chapter}"
        yield "\n".join(rows)


def _refuted(claim: Claim, claims: Sequence[Claim]) -> str:
    """A form that fails: the statement, its wording in print, and the claim that is upheld on the same runs."""
    upheld = next((c for c in claims if c.id == claim.sibling), None)
    printed = f" In print: {ended(claim.printed)}" if claim.printed else ""
    instead = f" Upheld on the same runs: {ended(_link(upheld))}" if upheld else ""
    return f"- **{ended(claim.title)}** {claim.statement}{printed}{instead} (`{claim.id}`)"


def _measured(claim: Claim) -> str:
    """An open question with its recorded readings."""
    question = f"- **{ended(claim.title)}** {claim.statement} (`{claim.id}`)"
    return "\n".join([question, *(f"    - {name}: {_reading(one)}" for name, one in (claim.records or {}).items())])


def _reading(record: dict[str, Any]) -> str:
    """A recorded value with its interval."""
    interval = record["interval"]
    return f"{record['value']:.4g}" + (f" [{interval[0]:.4g}, {interval[1]:.4g}]" if interval else "")


def _studies(claims: Sequence[Claim]) -> Iterator[str]:
    """How many claims were run at their paper's scale, and which had another verdict than expected."""
    by_claim = {c.id: study for c in claims if (study := studies.read_study(c.id)) is not None}
    if not by_claim:
        return
    differing = [c for c in claims if c.id in by_claim and studies.differs(by_claim[c.id]["claim"])]
    outcome = f"{len(differing)} with another verdict than expected" if differing else "all with the expected verdict"
    same = sum(studies.where_run(c.id) != studies.AT_PAPER_SCALE for c in claims if c.id in by_claim)
    more = f"; {same} of them {'has' if same == 1 else 'have'} the same runs at both scales" if same else ""
    run = f"{len(by_claim)} of {plural(len(claims), 'claim')} run at their paper's scale"
    yield f"{run} ([studies](../studies.md)), {outcome}{more}."
    for claim in differing:
        entry = by_claim[claim.id]["claim"]
        failed = [f"{c['name']}: {c['value']:.4g}" for c in entry.get("checks") or () if not c["passed"] and c["value"] is not None]
        why = "; ".join(filter(None, (entry.get("message"), *failed)))
        yield f"- {_link(claim)}: {entry['verdict']} instead of {claim.expected}" + (f". {ended(why)}" if why else ".")


def _map(stored: AtlasMap, root: Path) -> str:
    """A map of the atlas: its figure and finding."""
    file = f"map.{stored.name}.svg"
    figure = f"![{stored.title}](../figures/{file})\n\n" if (root / "docs" / "figures" / file).is_file() else ""
    return f"### {stored.title}\n\n{figure}{stored.finding}\n\n`{atlas.command(stored)}`"


def _figures(claims: Sequence[Claim], root: Path) -> Iterator[str]:
    """The figures of the theory's claims that the site shows."""
    names = gallery.names(root / "docs")
    if shown := [claim for claim in claims if claim.id in names]:
        yield "`jaxdyn verify CLAIM` draws them anew."
        yield from map(gallery.mark, shown)


def _commands(name: str, claims: Sequence[Claim], root: Path) -> Iterator[str]:
    """Commands to try: verification, one claim, and the experiments that draw the theory's figures and tables."""
    yield f"```\njaxdyn verify {name}\njaxdyn show {claims[0].id}\n```"
    scripts = sorted((root / "experiments").glob(f"{name}_*.py"))
    heads = [(ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").splitlines() for script in scripts]
    if scripts:
        yield "\n".join(f"- `python experiments/{s.name}`: {_prose(head[0])}" for s, head in zip(scripts, heads, strict=True))


# equations, from docstrings


def equations(name: str) -> list[str]:
    """The displayed equations in the docstrings of a theory's modules, each with its title and its file.

    Args:
        name: the theory's name.
    """
    folder = library.folder(name)
    files = sorted(folder.rglob("*.py")) if folder is not None else []
    by_formula: dict[str, str] = {}
    for file in files:
        source = file.read_text(encoding="utf-8")
        tree = ast.parse(source if ".. math::" in source else "")
        nodes = [tree, *(n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and not n.name.startswith("_"))]
        for node in nodes:
            text = ast.get_docstring(node) or ""
            formulas = ["$$\n" + " ".join(one.split()) + "\n$$" for one in MATH.findall(text)]
            if formulas and folder is not None:
                place = f"theories/{file.relative_to(folder.parent).as_posix()}"
                entry = "\n\n".join([f"**{_prose(text.splitlines()[0])}** (`{place}`)", *formulas])
                by_formula.setdefault("".join(formulas), entry)
    return list(by_formula.values())


def _prose(text: str) -> str:
    """A line of a docstring, as Markdown."""
    return ROLE.sub(r"$\1$", text).replace("``", "`")
