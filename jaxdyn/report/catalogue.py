"""The catalogue of claims as Markdown, which the site has, links to claims, and the README's table of theories."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from jaxdyn.attacks.recorded import brief_of
from jaxdyn.engine.base.meanings import meanings
from jaxdyn.engine.catalogue import library
from jaxdyn.engine.catalogue.registry import home, topic
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.contract import COUNTED, EVIDENCE, provenance
from jaxdyn.engine.claims.description import field_texts, span_text, tested
from jaxdyn.engine.claims.grid import field_table
from jaxdyn.engine.verification.payload import counts
from jaxdyn.report import studies
from jaxdyn.report.chapters import by_chapter
from jaxdyn.report.formatting import between, ended
from jaxdyn.report.talks.rows import links
from jaxdyn.wording import plural

__all__ = ["LINK", "anchor", "catalogue", "link", "place", "table", "with_table"]

MARKS = ("<!-- table:", "<!-- end of table -->")
LINK = re.compile(r"\]\((?:\.\./)*(?P<place>jaxdyn/theories/\S+\.py \"[\w.]+\")\)")  # the end of a claim's link
COLUMNS = {"misprint": "misprints"}  # headings of the table that differ from the names of kinds


def catalogue(claims: Sequence[Claim]) -> str:
    """All claims by theory and chapter: title, statement, set-up, source, verdict, controls, rivals, and fields.

    Claims of a chapter keep their order; theories are in the order of their first claims.
    """
    theories = list(dict.fromkeys(c.theory for c in claims))
    contents = [f"- [{t}](#{t}): {_count([c for c in claims if c.theory == t])}" for t in theories]
    intro = f"{_count(claims)}. This page is generated from the claims themselves; `jaxdyn list` prints the same."
    parts = ["# Catalogue of claims", intro, "\n".join(contents)]
    for theory in theories:
        parts += [f"## {theory}", *_about(theory)]
        for chapter, group in by_chapter(library.theory(theory), ((topic(c), c) for c in claims if c.theory == theory)).items():
            parts += [f"### {chapter}"] if chapter else []
            parts += [_entry(c, chapter) for c in group]
    return "\n\n".join(parts) + "\n"


def link(claim: Claim, up: str, title: str = "") -> str:
    """A claim's title, or another, linked to its file; the claim's id is the link's own title, by which the site knows it.

    Args:
        claim: one of the library's.
        up: the way from the page to the checkout, such as ``../``.
        title: instead of the claim's title.
    """
    return f"[{title or claim.title}]({up}{place(claim)})"


def place(claim: Claim) -> str:
    """What a claim's link leads to, from the checkout, with the claim's id."""
    return f'{home(claim)} "{claim.id}"'


def anchor(claim: Claim) -> str:
    """The name of a claim's heading in the catalogue, which has no dots."""
    return claim.id.lower().replace(".", "")


def _about(prefix: str) -> list[str]:
    """A theory's title, paragraph and papers; empty for claims without a title page."""
    page = library.theory(prefix)
    papers = [f"- [{p.title}]({p.url}), {p.authors}, {p.venue}" for p in library.papers(prefix)]
    return [] if page.title == prefix else list(filter(None, (f"**{page.title}**", page.about, "\n".join(papers))))


def table(claims: Sequence[Claim]) -> str:
    """A Markdown table of theories: their papers, and how many claims are upheld, misprints, beyond print, and measured."""
    head = ["theory", "papers", *(COLUMNS.get(kind, kind) for kind in COUNTED), "claims", "studies that differ"]
    rows = [f"| {' | '.join(head)} |", f"|---|---|{'--:|' * (len(head) - 2)}"]
    for theory in dict.fromkeys(c.theory for c in claims):
        mine = [c for c in claims if c.theory == theory]
        title = library.theory(theory).title
        links = ", ".join(f"[{p.arxiv}]({p.url})" for p in library.papers(theory))
        name = f"`{theory}`" if title == theory else f"`{theory}` [{title}](docs/theories/{theory}.md)"
        rows.append(_table_row(name, links, list(counts(mine).values()), _contradicted(mine)))
    rows.append(_table_row("all", "", list(counts(claims).values()), _contradicted(claims)))
    return "\n".join(rows) + f"\n\n{_by_evidence(claims)}\n"


def _by_evidence(claims: Sequence[Claim]) -> str:
    """One sentence on the kinds of evidence on which the claims rest."""
    counts = [(kind, sum(c.evidence == kind for c in claims)) for kind in EVIDENCE]
    stated = "; ".join(f"{n} *{kind}* ({EVIDENCE[kind]})" for kind, n in counts if n)
    return f"By evidence: {stated}."


def _contradicted(claims: Sequence[Claim]) -> int:
    """Number of claims whose study at paper scale has another verdict than expected."""
    return sum((study := studies.read_study(c.id)) is not None and studies.differs(study["claim"]) for c in claims)


def _table_row(name: str, links: str, counts: Sequence[int], contradicted: int) -> str:
    return f"| {name} | {links} | {' | '.join(map(str, counts))} | {sum(counts)} | {contradicted or ''} |"


def _count(claims: Sequence[Claim]) -> str:
    extra = [f"{n} {COLUMNS.get(kind, kind) if n > 1 else kind}" for kind, n in counts(claims).items() if n and kind != "upheld"]
    return f"{plural(len(claims), 'claim')}" + (f" ({', '.join(extra)})" if extra else "")


def _value(value: Any) -> str:
    several = value if isinstance(value, list | tuple) else [value]
    parts = [_value(v) if isinstance(v, list | tuple) else text for v, text in zip(several, field_texts(several), strict=True)]
    return "{" + ", ".join(parts) + "}" if isinstance(value, list) else ":".join(parts)


def _entry(claim: Claim, chapter: str) -> str:
    """One claim as a section; its theory and chapter are among the words by which a search finds it."""
    theory, level = library.theory(claim.theory).title, 4 if chapter else 3
    rows = field_table(claim.quick)
    told = meanings(claim.quick.setting)
    swept = ", ".join(
        f"`{r['name']}` = {_value(r['value'])}" + (f" ({told[r['name']]})" if r["name"] in told else "")
        for r in rows
        if r["name"] in claim.quick.axes
    )
    fixed = ", ".join(f"`{r['name']}` = {_value(r['value'])}" for r in rows if r["name"] not in claim.quick.axes)
    counted = f", {claim.counted}" if claim.expected == "refuted" else ""
    expected = (
        claim.expected + counted + (f" (the {claim.counterpart} form is upheld on the same runs)" if claim.counterpart else "")
    )
    # set-up, source, evidence, and what the claim rests on
    lines = [f"- From: {theory}{'; ' * bool(chapter)}{chapter}"] if theory != claim.theory else []
    lines += [f"- Tested: {text}"] if (text := tested(claim, claim.quick, claim.seeds)) else []
    lines += [f"- Source: {claim.source}", f"- Expected: {expected}"]
    lines.append(f"- Evidence: {claim.evidence} ({EVIDENCE[claim.evidence]})")
    if claim.assumes:
        lines.append(f"- Assumes: {', '.join(map(str, claim.assumes))}")
    if claim.holds:
        lines.append(f"- Holds for: {', '.join(span_text(f'`{name}`', *ends) for name, ends in claim.holds.items())}")
    if claim.printed:
        lines.append(f"- In print: {claim.printed}")
    if places := links(claim.talks):
        lines.append(f"- In the talks: {', '.join(places)}")
    # opponents and runs
    if claim.controls:
        lines.append(f"- Must be rejected: {'; '.join(claim.controls)}")
    if claim.rivals:
        lines.append(f"- Rivals, to be rejected as well: {'; '.join(claim.rivals)}")
    more = f", up to {claim.max_seeds} while a check is undecided" if claim.max_seeds else ""
    lines.append(f"- Runs: {len(claim.quick.cells())} × {plural(claim.seeds, 'seed')}{more}")
    lines += [f"- {word}: {text}" for word, text in (("Swept", swept), ("Fixed", fixed)) if text]
    # result at paper scale, bounds, file
    if study := studies.read_study(claim.id):
        sentence = f"- {studies.where_run(claim.id).capitalize()}: {study['claim']['verdict']} ({studies.provenance(study)})."
        lines.append(" ".join(filter(None, (sentence, studies.note(study, claim)))))
    if said := brief_of(claim.id):
        words = [f"{plural(said['open'], 'finding')} open" if said["open"] else "no finding open"]
        words += [f"{said['excused']} excused"] if said["excused"] else []
        lines.append(f"- The referee: {', '.join(words)} ({said['date']})")
    if claim.bounds:
        lines.append(f"- Bounds: {provenance(claim.bounds)}")
    if place := home(claim):
        lines.append(f"- Home: `{place}`")
    return f"{'#' * level} `{claim.id}`\n\n**{ended(claim.title)}** {claim.statement}\n\n" + "\n".join(lines)


def with_table(readme: str, claims: Sequence[Claim]) -> str:
    """The README with today's table of theories between its two marks.

    Raises:
        UsageError: the README lacks the marks.
    """
    return between(readme, MARKS, table(claims), "the README")
