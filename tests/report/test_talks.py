"""Every row of the talks has a home, and what is called printed there stands there."""

import dataclasses
import re
from collections import Counter
from pathlib import Path

import pytest

from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.claims.contract import COUNTED
from jaxdyn.report import talks

ROOT = Path(__file__).parents[2]
TEXTS = ROOT.parent / "shared" / "talks"


@pytest.fixture(scope="module")
def claims():
    return list(all_claims().values())


@pytest.fixture(scope="module")
def found(claims):
    return talks.homes(claims, ROOT)


def test_every_row_has_a_home_or_a_reason(found):
    of_masters = [row for talk in talks.talks().values() for row in talk.rows if not row.same]
    assert len(of_masters) > 100
    homeless = [row.name for row in of_masters if talks.fate(row, found.get(row.name, ())) is None]
    assert homeless == []
    both = [row.name for row in of_masters if row.reference and row.name in found]
    assert both == [], "a reference has no home"


def test_rows_that_are_named_exist_and_are_no_repetitions(found):
    rows = {row.name: row for talk in talks.talks().values() for row in talk.rows}
    assert sorted(found.keys() - {name for name, row in rows.items() if not row.same}) == []
    assert sorted(row.name for row in rows.values() if row.same and (row.same not in rows or rows[row.same].same)) == []


def test_rows_are_whole():
    for talk in talks.talks().values():
        for row in talk.rows:
            assert re.fullmatch(r"[a-z0-9-]+", row.id) and row.slide and row.kind in talks.KINDS, row.name
            others = {f.name for f in dataclasses.fields(row)} - {"talk", "id", "slide", "kind", "same", "note"}
            assert not row.same or not any(getattr(row, name) for name in others), f"{row.name} repeats another"
            assert row.same or row.says, f"{row.name} says nothing"


def test_a_fate_is_what_the_homes_say(claims):
    upheld, misprint, beyond, measured = (next(c for c in claims if c.counted == kind) for kind in COUNTED)
    row = talks.Row(talk="training", id="x", slide="y")
    assert talks.fate(row, [upheld, measured]) == "reproduced" and talks.fate(row, [upheld, misprint]) == "misprint"
    assert talks.fate(row, [upheld, beyond]) == "reproduced", "no misprint of the talk"
    assert talks.fate(row, [measured, Path("a.py")]) == "measured" and talks.fate(row, [Path("a.py")]) == "experiment"
    assert talks.fate(row, []) is None
    assert talks.fate(dataclasses.replace(row, reference="no machine"), []) == "reference"
    assert talks.fate(dataclasses.replace(row, fails="it falls"), [measured]) == "not reproduced"


def test_the_page_has_every_row_once(claims):
    page = talks.page(claims, ROOT)
    anchors = Counter(re.findall(r'<a id="([^"]+)">', page))
    assert anchors == Counter(f"{row.talk}-{row.id}" for talk in talks.talks().values() for row in talk.rows)
    assert {link for link in re.findall(r"\]\(#([^)]+)\)", page)} <= anchors.keys()
    lines = [line for line in page.splitlines() if line.startswith('| <a id="')]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {8}, "bars of formulas are written by name"
    assert sum(talks.summary(claims, ROOT).values()) == sum(not r.same for t in talks.talks().values() for r in t.rows)


def plainly(text):
    """A formula or a text without spaces, braces, fonts and sizes of brackets."""
    text = re.sub(
        r"\\(?:mathbf|boldsymbol|mathrm|mathcal|mathscr|text|operatorname|left|right|displaystyle|bigl?|bigr?|Bigl?|Bigr?)\b",
        "",
        text,
    )
    text = re.sub(r"\\[,;:! ]|\\quad|\\qquad|[\s{}&*]", "", text.replace(r"\top", "T"))
    return text.replace(r"\leq", r"\le").replace(r"\geq", r"\ge").replace(r"\lVert", r"\|").replace(r"\rVert", r"\|")


SOURCE = re.compile(r"talk ([a-z]+)|arXiv:\d{4}\.\d{4,5}")


def test_what_is_printed_names_its_source(claims):
    assert [c.id for c in claims if c.printed and not SOURCE.match(c.printed)] == []


@pytest.mark.skipif(not TEXTS.is_dir(), reason="the talks' texts are not here")
def test_formulas_from_a_talk_stand_in_it(claims):
    texts = {t.name: plainly(next(TEXTS.glob(f"{t.text}_*.txt")).read_text(encoding="utf-8")) for t in talks.talks().values()}
    wrong = []
    for claim in claims:
        if claim.printed and (source := SOURCE.match(claim.printed)) and source[1]:
            assert talks.talks()[source[1]].clean, f"{claim.id} quotes raw character recognition"
            formulas = [plainly(f) for f in re.findall(r"\$([^$]*)\$", claim.printed)]
            assert formulas, f"{claim.id} quotes nothing"
            wrong += [(claim.id, f) for f in formulas if f not in texts[source[1]]]
    assert wrong == []


@pytest.mark.skipif(not TEXTS.is_dir(), reason="the talks' texts are not here")
def test_titles_of_slides_stand_in_the_talk():
    for talk in talks.talks().values():
        if talk.clean:
            text = plainly(next(TEXTS.glob(f"{talk.text}_*.txt")).read_text(encoding="utf-8")).lower()
            wrong = [row.name for row in talk.rows if row.slide != "(no title)" and plainly(row.slide).lower() not in text]
            assert wrong == []
