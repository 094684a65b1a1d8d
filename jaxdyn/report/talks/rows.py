"""Rows of the talks: the content of each theorem, figure, table and number, and which checks of which claims are its sentence.

A talk's rows are in ``NAME.toml``, in the order of its slides. Claims (``talks=``) and experiments (``TALKS``) name the rows that
they are about, ``"talk:row"``; a row names the checks that are its sentence (``by``), and one that repeats another names it
(``same``). Claims that are about no slide are in ``elsewhere.toml``, with the reason.
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

__all__ = [
    "KINDS",
    "Formula",
    "Home",
    "Number",
    "Row",
    "Talk",
    "cell",
    "elsewhere",
    "experiments",
    "homes",
    "links",
    "master",
    "rows",
    "talks",
    "titled",
]

FOLDER = Path(__file__).parent
ORDER = ("training", "grokking", "practical", "short", "attention")
KINDS = ("theorem", "equation", "figure", "table", "number", "assumption", "statement")
BARS = re.compile(r"\$[^$]*\$")
ANY = "any"  # size of a sentence that names none
REDUCED = "reduced"  # of one that is decided in the theory's own equations


@dataclass(frozen=True)
class Number:
    """A number of ours: what a claim calls it, and what is printed and compared with its interval, if there is something.

    What is printed is a number as it is written (``"0.91"``), or a bound (``">0.9"``).
    """

    claim: str
    name: str
    printed: str = ""


@dataclass(frozen=True, kw_only=True)
class Formula:
    """The slide's formula over the variables of a claim's runs: it equals the claim's prediction to 1e-6.

    Args:
        claim: the claim.
        expression: in Python, of variables and coordinates of the claim's Dataset, fields of its setting, and functions of NumPy.
        equals: the variable that the claim predicts.
    """

    claim: str
    expression: str
    equals: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """A statement, figure, table or number on one or several slides.

    Args:
        talk, id: the row's name, ``talk:id``.
        slide: the title of the slide.
        kind: one of :data:`KINDS`.
        says: its content in words, with the slide's formulas.
        theirs: what is printed.
        by: claims, each with the check (or gate, or reading) that is the slide's sentence.
        formula: the slide's formula, evaluated next to the claim's prediction.
        ours: numbers of ours that are shown next to the printed ones, and compared with them where these are given.
        paper: size of what the slide reports: fields of the deciding claims' settings with the paper's values, or names with
            ``[theirs, ours]``, as of experiments; "any": its sentence names none, or is one for every size; "reduced": what decides
            it is about the theory's reduced equations, whatever its evidence.
        order: why the sentence is reproduced in kind only (the sign or the order, not the number), in words.
        misprint: how the print is wrong, in words, where no claim of its own refutes it and another has the right form.
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
    by: tuple[tuple[str, str], ...] = ()
    formula: Formula | None = None
    ours: tuple[Number, ...] = ()
    paper: Mapping[str, Any] | str = ""
    order: str = ""
    misprint: str = ""
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
    try:
        read = {
            "by": tuple((claim, check) for claim, check in given.get("by", ())),
            "ours": tuple(Number(*one) for one in given.get("ours", ())),
            "formula": Formula(**given["formula"]) if "formula" in given else None,
        }
        return Row(talk=talk, **{**given, **read})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{talk}.toml, row {given.get('id')}: {error}") from None


@functools.cache
def elsewhere() -> dict[str, str]:
    """Claims, or all of a theory (``"theory.*"``), that are about no slide, with the reason."""
    groups = tomllib.loads((FOLDER / "elsewhere.toml").read_text(encoding="utf-8"))["group"]
    return {claim: group["reason"] for group in groups for claim in group["claims"]}


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
    return [f"[{cell(slide)}](talks.md#{row.talk}-{row.id})" for slide, row in of.items()]


def cell(text: str) -> str:
    """Text for a cell of a table: bars in formulas are written as macros, all others escaped."""
    named = BARS.sub(lambda m: m[0].replace(r"\|", r"\Vert ").replace("|", r"\vert "), " ".join(text.split()))
    return named.replace("|", r"\|")


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
