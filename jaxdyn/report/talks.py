"""The talks, slide by slide: the content of each theorem, figure, table and number, and the claim or experiment that decides it.

A talk's rows are in ``talks/NAME.toml``, in the order of its slides. Claims (``talks=``) and experiments (``TALKS``) name the
rows that they decide, ``"talk:row"``; a row that repeats another names it (``same``). ``make docs`` writes ``docs/talks.md``.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.verification.last_verdicts import recorded_verdicts
from jaxdyn.errors import UsageError
from jaxdyn.report import studies

__all__ = [
    "KINDS",
    "Home",
    "Row",
    "Talk",
    "experiments",
    "fate",
    "homes",
    "links",
    "master",
    "page",
    "rows",
    "summary",
    "talks",
    "titled",
    "with_counts",
]

FOLDER = Path(__file__).with_name("talks")
ORDER = ("training", "grokking", "practical", "short", "attention")
KINDS = ("theorem", "equation", "figure", "table", "number", "assumption", "statement")
FATES = {  # outcome of a row -> its name in a count, and its meaning
    "reproduced": ("reproduced", "decided by a claim that is upheld"),
    "misprint": ("misprints", "refuted as printed, next to a corrected form that is upheld"),
    "not reproduced": ("not reproduced", "decided or measured, and not what the slide says"),
    "measured": ("measured", "a question left open, or numbers of ours without a verdict on the slide's"),
    "experiment": ("drawn or tabulated", "by an experiment next to the printed ones, without a verdict"),
    "reference": ("references", "cited only, with the reason"),
}
MARKS = ("<!-- talks -->", "<!-- end of talks -->")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A statement, figure, table or number on one or several slides.

    Args:
        talk, id: the row's name, ``talk:id``.
        slide: the title of the slide.
        kind: one of :data:`KINDS`.
        says: its content in words, with the slide's formulas.
        theirs: the printed number.
        ours: claims, each with the reading or check that is shown next to the printed number.
        fails: how it fails to reproduce, in words.
        note: a remark that readers need.
        reference: why nothing decides it, and what a decision would take.
        same: the row that it repeats.
    """

    talk: str
    id: str
    slide: str
    kind: str = "statement"
    says: str = ""
    theirs: str = ""
    ours: tuple[tuple[str, str], ...] = ()
    fails: str = ""
    note: str = ""
    reference: str = ""
    same: str = ""

    @property
    def name(self) -> str:
        """The row's name as claims write it, ``talk:row``."""
        return f"{self.talk}:{self.id}"


@dataclass(frozen=True)
class Talk:
    """A talk: its title, the name of its text, whether that text is clean, and its rows in the order of the slides."""

    name: str
    title: str
    text: str
    clean: bool
    rows: tuple[Row, ...]


Home: TypeAlias = Claim | Path  # a claim, or the file of an experiment


@functools.cache
def talks() -> dict[str, Talk]:
    """All talks by name.

    Raises:
        ValueError: a file has an unknown field, or two rows with the same name.
    """
    by_name = {}
    for name in ORDER:
        read = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
        rows = tuple(_row(name, given) for given in read.get("row", ()))
        if twice := [one for one, n in Counter(row.id for row in rows).items() if n > 1]:
            raise ValueError(f"{name}.toml: two rows are called {twice[0]}")
        by_name[name] = Talk(name, read["title"], str(read["text"]), read.get("clean", True), rows)
    return by_name


def _row(talk: str, given: Mapping[str, Any]) -> Row:
    fields = {**given, "ours": tuple((claim, number) for claim, number in given.get("ours", ()))}
    try:
        return Row(talk=talk, **fields)
    except TypeError as error:
        raise ValueError(f"{talk}.toml, row {given.get('id')}: {error}") from None


def rows() -> dict[str, Row]:
    """All rows by name."""
    return {row.name: row for talk in talks().values() for row in talk.rows}


def titled(names: Sequence[str]) -> list[str]:
    """The slides of some rows with their talks, ``“Main Theorem” (Practical algorithms …)``; unknown names stay unchanged."""
    known, by_talk = rows(), dict[str, dict[str, None]]()
    for name in names:
        talk, title = (talks()[known[name].talk].title, f"“{known[name].slide}”") if name in known else ("", name)
        by_talk.setdefault(talk, {})[title] = None
    return [", ".join(titles) + (f" ({talk})" if talk else "") for talk, titles in by_talk.items()]


def links(names: Sequence[str]) -> list[str]:
    """The slides of some rows, linked to the page of the talks; names that are not on that page are left out."""
    of = {known.slide: known for known in map(rows().get, names) if known is not None}
    return [f"[{_cell(slide)}](talks.md#{row.talk}-{row.id})" for slide, row in of.items()]


def master(row: Row) -> Row:
    """The row itself, or the one that it repeats."""
    return rows()[row.same] if row.same else row


def experiments(root: Path) -> dict[Path, tuple[str, ...]]:
    """The scripts of a checkout that name rows, ``TALKS = ("talk:row",)``; scripts are parsed, not imported."""
    by_file = {}
    for file in sorted((root / "experiments").glob("*.py")):
        source = file.read_text(encoding="utf-8")
        for node in ast.parse(source).body if "TALKS" in source else ():
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "TALKS" for t in node.targets):
                by_file[file] = tuple(ast.literal_eval(node.value))
    return by_file


def homes(claims: Sequence[Claim], root: Path) -> dict[str, list[Home]]:
    """The claims and experiments that name each row, by the row's name."""
    by_row: dict[str, list[Home]] = {}
    for claim in claims:
        for name in claim.talks:
            by_row.setdefault(name, []).append(claim)
    for file, names in experiments(root).items():
        for name in names:
            by_row.setdefault(name, []).append(file)
    return by_row


def fate(row: Row, its_homes: Sequence[Home]) -> str | None:
    """The outcome of a row, a key of :data:`FATES`; None if nothing decides it and no reason is given."""
    counted = [home.counted for home in its_homes if isinstance(home, Claim)]
    if row.fails:
        return "not reproduced"
    if "misprint" in counted:
        return "misprint"
    for outcome, known in (("upheld", "reproduced"), ("measured", "measured")):
        if outcome in counted:
            return known
    return "experiment" if its_homes else "reference" if row.reference else None


def summary(claims: Sequence[Claim], root: Path) -> Counter[str]:
    """Number of rows with each outcome, without repetitions."""
    by_row = homes(claims, root)
    return Counter(str(fate(row, by_row.get(row.name, ()))) for row in rows().values() if not row.same)


def with_counts(readme: str, claims: Sequence[Claim], root: Path) -> str:
    """The README with today's counts between their two marks.

    Raises:
        UsageError: the README lacks the marks.
    """
    start, end = readme.find(MARKS[0]), readme.find(MARKS[1])
    if not 0 <= start < end:
        raise UsageError(f"the README lacks the marks {' and '.join(MARKS)}")
    counted = summary(claims, root)
    parts = ", ".join(f"{counted[name]} {words}" for name, (words, _) in FATES.items() if counted[name])
    sentence = f"Of {sum(counted.values())} statements, figures and numbers of [five talks](docs/talks.md): {parts}."
    return readme[: start + len(MARKS[0])] + sentence + readme[end:]


# the page

INTRO = """# The talks, slide by slide

Five talks by Y. Tian. Each theorem, figure, table and number has a row, in the order of the slides: what it says, what decides it
here and on what evidence, the verdicts at quick scale and at paper scale, their number and ours. A row that repeats another points
to it. `jaxdyn verify CLAIM` repeats a claim's verdict, `python experiments/NAME.py` an experiment. This page is written by
`make docs`.
"""
HEAD = "| slide | what it says | decided by | quick | paper | theirs | ours |\n|---|---|---|---|---|---|---|"
BARS = re.compile(r"\$[^$]*\$")


def page(claims: Sequence[Claim], root: Path) -> str:
    """The text of ``docs/talks.md``."""
    by_row, counted, by_id = homes(claims, root), summary(claims, root), {claim.id: claim for claim in claims}
    parts = [
        INTRO,
        "\n".join(f"- **{counted[name]} {words}**: {meaning}." for name, (words, meaning) in FATES.items() if counted[name]),
    ]
    for talk in talks().values():
        raw = "" if talk.clean else " (its text is raw character recognition: formulas are taken from the others)"
        parts += [f"## {talk.title}{raw}", "\n".join([HEAD, *(_line(row, by_row, by_id) for row in talk.rows)])]
    return "\n\n".join(parts) + "\n"


def _line(row: Row, by_row: Mapping[str, Sequence[Home]], claims: Mapping[str, Claim]) -> str:
    """A row of the page."""
    anchor, slide = f'<a id="{row.talk}-{row.id}"></a>', _cell(row.slide)
    if row.same:
        note = f" {_cell(row.note)}" if row.note else ""
        first = master(row)
        return f"| {anchor}{slide} | [as in “{_cell(first.slide)}”](#{first.talk}-{first.id}){note} | | | | | |"
    own = by_row.get(row.name, ())
    says = " ".join(filter(None, (f"*{row.kind}.*", row.says, row.fails, row.note)))
    undecided = f"*reference only:* {_cell(row.reference)}"
    decided = "<br>".join(map(_home, own)) or undecided
    of = [home for home in own if isinstance(home, Claim)]
    quick, paper = (
        "<br>".join(_verdict(verdict) for verdict in side) for side in ([_recorded(c) for c in of], [_studied(c) for c in of])
    )
    ours = "<br>".join(_ours(claims[claim], number) for claim, number in row.ours)
    return f"| {anchor}{slide} | {_cell(says)} | {decided} | {quick} | {paper} | {_cell(row.theirs)} | {ours} |"


def _cell(text: str) -> str:
    """Text for a cell of a table: bars in formulas are written as macros, all others escaped."""
    named = BARS.sub(lambda m: m[0].replace(r"\|", r"\Vert ").replace("|", r"\vert "), " ".join(text.split()))
    return named.replace("|", r"\|")


def _home(home: Home) -> str:
    """A claim's title, linked to the catalogue, with its evidence; or the path of an experiment."""
    if isinstance(home, Claim):
        link = f"catalogue.md#{home.id.lower().replace('.', '')}"
        return f"[{_cell(home.title)}]({link}) (`{home.id}`, {home.evidence})"
    return f"`experiments/{home.name}`"


def _verdict(verdict: str | None) -> str:
    return verdict or "–"


def _recorded(claim: Claim) -> str | None:
    return recorded_verdicts().get(claim.id, {}).get("verdict")


def _studied(claim: Claim) -> str | None:
    study = studies.read_study(claim.id)
    return None if study is None else str(study["claim"]["verdict"])


def _ours(claim: Claim, name: str) -> str:
    """A recorded number with its name, from a measured claim's record or from the claim's study at paper scale."""
    if (record := (claim.records or {}).get(name)) is not None:
        return f"{_number(record['value'], record['interval'])} ({_cell(name)})"
    study = studies.read_study(claim.id)
    entry: dict[str, Any] = {} if study is None else study["claim"]
    for one in (*entry.get("readings", ()), *entry.get("checks", ()), *entry.get("gates", ())):
        if one["name"] == name:
            return f"{_number(one['value'], one['interval'])} ({_cell(name)})"
    raise ValueError(f"{claim.id} has no recorded number called {name!r}")


def _number(value: float, interval: Sequence[float] | None) -> str:
    return f"{value:.4g}" + (f" [{interval[0]:.3g}, {interval[1]:.3g}]" if interval else "")
