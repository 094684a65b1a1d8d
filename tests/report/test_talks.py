"""Every row of the talks has a fate that is decided, at a scale that is said, and what is called printed there stands there."""

import dataclasses
import re
from collections import Counter
from pathlib import Path

import pytest

from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.claims.contract import COUNTED
from jaxdyn.report import studies
from jaxdyn.report.talks import fates, formulas, page
from jaxdyn.report.talks.rows import ANY, KINDS, REDUCED, Formula, Number, Row, elsewhere, homes, rows, talks

ROOT = Path(__file__).parents[2]
TEXTS = ROOT.parent / "shared" / "talks"


@pytest.fixture(scope="module")
def claims():
    return all_claims()


@pytest.fixture(scope="module")
def found(claims):
    return homes(list(claims.values()), ROOT)


@pytest.fixture(scope="module")
def decided(claims):
    return fates.fates(list(claims.values()), ROOT)


MASTERS = {name: row for name, row in rows().items() if not row.same}


def names_of(claim):
    """What checks, gates and readings of a claim are called, as far as a record tells."""
    numbers = set(fates.decision(claim.id).numbers) | set(claim.records or {})
    entry = (studies.read_study(claim.id) or {"claim": {}})["claim"]
    return numbers | {one["name"] for part in ("checks", "gates", "readings") for one in entry.get(part, ())}


# rows


def test_every_row_has_a_fate(decided, found):
    assert len(MASTERS) > 100 and [name for name, one in decided.items() if one is None] == []
    assert [name for name, row in MASTERS.items() if row.reference and (row.by or name in found)] == [], "a reference has no home"


def test_rows_that_are_named_exist_and_are_no_repetitions(found):
    assert sorted(found.keys() - MASTERS.keys()) == []
    assert sorted(row.name for row in rows().values() if row.same and row.same not in MASTERS) == []


def test_rows_are_whole():
    for row in rows().values():
        assert re.fullmatch(r"[a-z0-9-]+", row.id) and row.slide and row.kind in KINDS, row.name
        others = {f.name for f in dataclasses.fields(row)} - {"talk", "id", "slide", "kind", "same", "note"}
        assert not row.same or not any(getattr(row, name) for name in others), f"{row.name} repeats another"
        assert row.same or row.says, f"{row.name} says nothing"


def test_a_row_names_the_checks_that_are_its_sentence(claims, found):
    bare = [n for n, row in MASTERS.items() if not (row.by or row.reference or any(isinstance(h, Path) for h in found.get(n, ())))]
    assert bare == [], "no check is named"
    strange = [(n, claim) for n, row in MASTERS.items() for claim, _ in row.by if claims[claim] not in found.get(n, ())]
    assert strange == [], "a claim that decides a row names it, too (talks=)"
    known = {claim: names_of(claims[claim]) for row in MASTERS.values() for claim, _ in row.by}
    wrong = [(n, *one) for n, row in MASTERS.items() for one in row.by if known[one[0]] and one[1] not in known[one[0]]]
    assert wrong == [], "no check of that name"


def test_what_was_trained_says_how_large_the_papers_is(claims):
    trained = [n for n, row in MASTERS.items() if any(claims[claim].evidence in ("network", "model") for claim, _ in row.by)]
    assert [n for n in trained if not MASTERS[n].paper] == []
    fields = {n: row.paper for n, row in MASTERS.items() if isinstance(row.paper, dict)}
    assert all(row.paper in ("", ANY, REDUCED) or n in fields for n, row in MASTERS.items())
    for n, sizes in fields.items():
        of = [fates.decision(claim).grid.setting.hints for claim, _ in MASTERS[n].by]
        assert all(isinstance(given, list) or any(name in hints for hints in of) for name, given in sizes.items()), n


def test_a_printed_number_is_compared_where_a_row_is_reproduced(claims, decided):
    silent = []
    for n, row in MASTERS.items():
        if row.theirs and row.kind in ("number", "table") and decided[n].outcome == "reproduced":
            exact = any(claims[claim].evidence in ("algebra", "numbers") for claim, _ in row.by)
            if not (exact or row.formula or any(one.printed for one in row.ours)):
                silent.append(n)
    assert silent == []


def test_what_a_claim_refutes_as_printed_is_no_reproduced_row(claims, decided):
    wrong = []
    for claim in claims.values():
        if claim.counted != "misprint" or not claim.printed:
            continue
        for formula in map(plainly, re.findall(r"\$([^$]*)\$", claim.printed)):
            of = [n for n, row in MASTERS.items() if len(formula) > 8 and formula in plainly(row.says)]
            wrong += [(n, claim.id) for n in of if decided[n].outcome == "reproduced"]
    assert wrong == []


def test_a_definition_is_a_reference(decided):
    told = {n: " ".join((row.says, row.order, row.note)).lower() for n, row in MASTERS.items()}
    assert [n for n, text in told.items() if "definition" in text and decided[n].outcome != "reference"] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, row in MASTERS.items() if row.formula])
def test_a_slides_formula_is_the_claims_prediction(claims, name):
    formula = MASTERS[name].formula
    claim = claims[formula.claim]
    assert formula.claim in {one for one, _ in MASTERS[name].by}
    assert formulas.difference(formula, formulas.runs(claim), claim.quick.base) <= formulas.EQUAL


def test_every_claim_is_about_a_row_or_of_no_slide(claims):
    linked = {claim.id for claim in claims.values() if claim.talks}
    listed = elsewhere()
    covered = {c for c in claims if c in listed or f"{c.split('.')[0]}.*" in listed}
    assert sorted(set(claims) - linked - covered) == []
    assert sorted(linked & set(listed)) == [] and all(listed.values())
    assert [one for one in listed if one not in claims and not any(c.startswith(one[:-1]) for c in claims)] == []


def test_a_share_counts_the_data_of_a_training(monkeypatch):
    row = Row(talk="training", id="x", slide="y", paper={"batch": [512, 64], "length": [256, 128], "steps": [1000, 500]})
    assert fates.share(row) == pytest.approx(64 * 128 * 500 / (512 * 256 * 1000))
    assert fates.share(dataclasses.replace(row, paper={"residues": [127, 23], "width": [64, 64]})) == pytest.approx((23 / 127) ** 2)
    assert fates.share(dataclasses.replace(row, paper={"batch": [8, 64], "steps": [10, 5]})) == 0.5  # more data than the paper's: 4


def test_a_misprint_stands_next_to_what_is_upheld(claims, decided):
    misprints = [n for n, one in decided.items() if one.outcome == "misprint"]
    bare = [n for n in misprints if not any(claims[claim].counted == "upheld" for claim, _ in MASTERS[n].by)]
    assert misprints and bare == []


# the page


def test_the_page_tells_under_what_conditions_a_claim_decides(claims):
    with_breach = next(c for c in claims.values() if any(isinstance(one.breach, dict) for one in c.controls.values()))
    named = [name for name, one in with_breach.controls.items() if isinstance(one.breach, dict)]
    limits = page.limits_of(with_breach)
    assert "*not:* " in limits and all(page.cell(name) in limits for name in named)
    ranged = next(c for c in claims.values() if c.holds and not c.assumes)
    field, (low, high) = next(iter(ranged.holds.items()))
    assert f"*only:* {field} {low:g}" in page.limits_of(ranged) and f"{field} {low:g} to {low:g}" not in page.limits_of(ranged)
    plain = next(
        c for c in claims.values() if not (c.holds or c.assumes or any(isinstance(x.breach, dict) for x in c.controls.values()))
    )
    assert page.limits_of(plain) == "" and low <= high


def test_a_number_of_an_earlier_study_has_its_own_date(claims, monkeypatch):
    claim = next(c for c in claims.values() if studies.read_study(c.id) and studies.read_study(c.id)["claim"].get("checks"))
    study = studies.read_study(claim.id)
    name = study["claim"]["checks"][0]["name"]
    of = fates.Decision(claim, claim.quick, "upheld", "2030-01-01", True, {})
    monkeypatch.setattr(type(claim), "records", {}, raising=False)
    seen = fates.source(of, name)
    assert seen.earlier and seen.date == study["environment"]["date"] != of.date
    assert page.since_when(of, name) == f" (of {seen.date[:10]}, earlier)"
    there = dataclasses.replace(of, numbers={name: [1.0]})
    assert fates.source(there, name) == ([1.0], "2030-01-01", False, ()) and page.since_when(there, name) == ""
    assert fates.source(of, "no such check") is None
    field, value = next(
        (k, v) for k, v in study["claim"]["settings"].items() if isinstance(v, int | float) and not isinstance(v, bool)
    )
    moved = {**study, "claim": study["claim"] | {"settings": study["claim"]["settings"] | {field: value + 1}}}
    monkeypatch.setattr(studies, "read_study", lambda name: moved)
    assert field in fates.source(
        of, name
    ).others and f"with other values of {', '.join(fates.source(of, name).others)}" in page.since_when(of, name)


# fates


def test_an_outcome_is_what_the_claims_say(claims, monkeypatch):
    upheld, misprint, beyond, measured = (next(c for c in claims.values() if c.counted == kind) for kind in COUNTED)
    verdicts = {upheld.id: "upheld", misprint.id: "refuted", beyond.id: "refuted", measured.id: "measured"}
    values = {"n": [2.0, 1.9, 2.1]}
    made = lambda one: fates.Decision(claims[one], claims[one].quick, verdicts[one], "", True, values)  # noqa: E731
    monkeypatch.setattr(fates, "decision", made)
    row = Row(talk="training", id="x", slide="y")

    def outcome(*by, **fields):
        given = dataclasses.replace(row, by=tuple((c.id, "n") for c in by), **fields)
        return fates.fate(given, by).outcome

    assert outcome(upheld, measured) == "reproduced" and outcome(upheld, misprint) == "misprint"
    assert outcome(upheld, beyond) == "reproduced", "no misprint of the talk"
    assert outcome(measured) == "measured" and outcome(upheld, order="only its sign") == "in kind"
    near, far = (Number(measured.id, "n", printed) for printed in ("2.1", "3.0"))
    assert outcome(measured, ours=(near,)) == "reproduced" and outcome(measured, ours=(far,)) == "measured"
    assert outcome(upheld, ours=(far,)) == "in kind" and outcome(upheld, ours=(near, far)) == "in kind"
    assert outcome(measured, fails="it falls") == "not reproduced"
    assert outcome(upheld, misprint="a cell is wrong") == "misprint"
    assert fates.fate(row) is None and fates.fate(row, [Path("a.py")]).outcome == "measured"
    assert fates.fate(dataclasses.replace(row, reference="no machine")).outcome == "reference"
    for verdict in ("inconclusive", None):
        verdicts[upheld.id] = verdict
        assert outcome(upheld) == "measured", "what is not upheld, or was never judged, reproduces nothing"


def test_a_scale_is_the_share_of_the_papers_size(claims):
    network = claims["variants.balance"]
    reduced = next(c for c in claims.values() if c.evidence == "reduced" and c.counted == "upheld")
    of = lambda claim, **paper: fates.fate(Row(talk="t", id="x", slide="y", by=((claim.id, ""),), paper=paper or ANY))  # noqa: E731
    assert (of(network).scale, of(network, width=64).scale, of(reduced).scale) == ("full", "full", "reduced")
    small = of(network, width=128, layers=[2, 2])
    assert (small.scale, small.share) == ("smaller", 0.25), "32 of 128"
    assert of(network, epochs=[1000, 10]).share == 0.01
    alone = Row(talk="t", id="x", slide="y", paper={"width": [128, 32]})
    assert fates.fate(alone, [Path("a.py")]).share == 0.25, "an experiment says its own size"


@pytest.mark.parametrize(
    ("printed", "value", "interval", "agree"),
    [
        ("0.91", 0.9, (0.88, 0.92), True),
        ("0.91", 0.9, (0.88, 0.90), False),
        ("0.91", 0.9, (0.88, 0.906), True),  # .905 is .91
        ("0.91", 0.9, (0.1, 1.0), False),  # says nothing
        ("12", 12.4, None, True),
        ("12", 12.6, None, False),
        ("12", float("nan"), None, False),
        ("0", 0.2, (-0.3, 0.4), True),
        (">0.9", 0.95, (0.91, 0.99), True),
        (">0.9", 0.95, (0.89, 1.01), False),
        ("<2", 1.5, None, True),
    ],
)
def test_a_printed_number_lies_in_our_interval(printed, value, interval, agree):
    assert fates.agrees(printed, value, interval) is agree


def test_a_formula_is_evaluated_next_to_the_prediction(claims):
    claim = claims["cal.quadratic_rate"]
    ds = formulas.runs(claim)
    name = next(str(v) for v in ds.data_vars if str(v).startswith("predicted"))
    assert formulas.difference(Formula(claim=claim.id, expression=name, equals=name), ds, claim.quick.base) == 0
    twice = Formula(claim=claim.id, expression=f"2 * {name}", equals=name)
    assert formulas.difference(twice, ds, claim.quick.base) > 0.5
    with pytest.raises(ValueError, match="nowhere"):
        formulas.difference(dataclasses.replace(twice, expression="nowhere"), ds, claim.quick.base)
    with pytest.raises(ValueError, match="has no variable 'y'"):
        formulas.difference(dataclasses.replace(twice, equals="y"), ds, claim.quick.base)


# the page


def test_the_page_has_every_row_once(claims):
    text = page.page(list(claims.values()), ROOT)
    anchors = Counter(re.findall(r'<a id="([^"]+)">', text))
    assert anchors == Counter(f"{row.talk}-{row.id}" for row in rows().values())
    assert {link for link in re.findall(r"\]\(#([^)]+)\)", text)} <= anchors.keys()
    lines = [line for line in text.splitlines() if line.startswith('| <a id="')]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {8}, "bars of formulas are written by name"


def test_the_readme_counts_what_is_reproduced_at_full_scale(claims, decided):
    counted = fates.summary(decided)
    assert counted.total() == len(MASTERS)
    text = page.with_counts("a <!-- talks --> b <!-- end of talks --> c", list(claims.values()), ROOT)
    assert f"Of {len(MASTERS)} statements" in text and f"{counted['reproduced', 'full']} reproduced at full scale" in text


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
    assert [c.id for c in claims.values() if c.printed and not SOURCE.match(c.printed)] == []


@pytest.mark.skipif(not TEXTS.is_dir(), reason="the talks' texts are not here")
def test_formulas_from_a_talk_stand_in_it(claims):
    texts = {t.name: plainly(next(TEXTS.glob(f"{t.text}_*.txt")).read_text(encoding="utf-8")) for t in talks().values()}
    wrong = []
    for claim in claims.values():
        if claim.printed and (source := SOURCE.match(claim.printed)) and source[1]:
            assert talks()[source[1]].clean, f"{claim.id} quotes raw character recognition"
            formulas = [plainly(f) for f in re.findall(r"\$([^$]*)\$", claim.printed)]
            assert formulas, f"{claim.id} quotes nothing"
            wrong += [(claim.id, f) for f in formulas if f not in texts[source[1]]]
    assert wrong == []


@pytest.mark.skipif(not TEXTS.is_dir(), reason="the talks' texts are not here")
def test_titles_of_slides_stand_in_the_talk():
    for talk in talks().values():
        if talk.clean:
            text = plainly(next(TEXTS.glob(f"{talk.text}_*.txt")).read_text(encoding="utf-8")).lower()
            wrong = [row.name for row in talk.rows if row.slide != "(no title)" and plainly(row.slide).lower() not in text]
            assert wrong == []
