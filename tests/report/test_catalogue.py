"""The catalogue lists claims by theory."""

import json
import re

import jaxdyn as jd
from jaxdyn.engine.catalogue import library
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.report.catalogue import catalogue

EXAMPLE = "lyu"  # a small theory


@jd.setting
class Decay:
    """A setting to list."""

    rate: jd.Swept = 1.0
    optimizer: jd.Code = jd.code("gd", "adam")
    sizes: tuple[int, ...] = (3, 4)


def test_catalogue_lists_claims_by_theory():
    common = dict(source="a paper", trial=print, judge=print, quick=jd.grid(Decay, rate=[0.5, 1.0]), seeds=8, evidence="algebra")
    claims = [
        jd.Claim(
            id="b.one", title="First", statement="One, $x$.", controls={"wrong rate": {"rate": 2.0}}, bounds="derived", **common
        ),
        jd.Claim(
            id="a.two_naive", title="Second", statement="Two.", expected="refuted", form="printed", counterpart="derived", **common
        ),
        jd.Claim(id="b.three", title="Third", statement="Three.", expected="measured", **common),
    ]
    text = catalogue(claims)
    assert re.findall(r"^#+ (.*)$", text, re.M)[1:] == ["b", "`b.one`", "`b.three`", "a", "`a.two_naive`"]
    assert "- Must be rejected: wrong rate" in text and "- Swept: `rate` = {0.5, 1}" in text
    assert "- Fixed: `optimizer` = gd, `sizes` = 3:4" in text and "- Runs: 2 × 8 seeds" in text
    assert (
        "refuted, beyond print (the derived form is upheld on the same runs)" in text
        and "- [a](#a): 1 claim (1 beyond print)" in text
    )


def test_catalogue_says_what_a_verdict_rests_on():
    claim = jd.Claim(
        id="a.law",
        title="It holds",
        statement="One.",
        source="a paper",
        trial=print,
        judge=print,
        quick=jd.grid(Decay),
        evidence="flow",
        assumes=jd.below("overlap", 1.0),
        controls={"wrong rate": {"rate": 2.0}},
        rivals={"nothing moves": jd.off(predicted_x="start")},
        form="derived",
        bounds=jd.tuned(on="0:8", confirmed_on="8:16"),
    )
    text = catalogue(
        [claim, claim.as_printed(id="a.law_as_printed", title="As printed", statement="Two.", form="printed", printed="eq. (7)")]
    )
    for line in (
        "- Evidence: flow (gradient flow of the model's loss, by automatic differentiation)",
        "- Assumes: overlap < 1",
        "- Rivals, to be rejected as well: nothing moves",
        "- Bounds: tuned on seeds 0:8, confirmed on seeds 8:16",
        "- In print: eq. (7)",
    ):
        assert f"\n{line}\n" in text


def test_catalogue_names_the_study_at_paper_scale(tmp_path, monkeypatch):
    study = {"claim": {"verdict": "inconclusive", "runs": 4096}, "environment": {"date": "2026-11-22 15:01 UTC", "jaxdyn": "0.1.0"}}
    (tmp_path / "a.law.json").write_text(json.dumps(study), encoding="utf-8")
    monkeypatch.setattr(library, "recorded_folder", lambda prefix, kind: tmp_path)
    common = dict(
        title="It holds", statement="One.", source="a paper", trial=print, judge=print, quick=jd.grid(Decay), evidence="algebra"
    )
    common |= dict(controls={"wrong rate": {"rate": 2.0}}, bounds="derived")
    text = catalogue([jd.Claim(id=f"a.{name}", **common) for name in ("law", "other")])
    assert text.count("- At paper scale:") == 1
    sentence = "Not current: recorded before fingerprints were kept."
    assert f"- At paper scale: inconclusive (4,096 runs, 2026-11-22, jaxdyn 0.1.0). {sentence}\n" in text


def test_claims_stand_under_the_titles_of_their_chapters(monkeypatch):
    common = dict(
        title="It holds", statement="One.", source="a paper", trial=print, judge=print, quick=jd.grid(Decay), evidence="algebra"
    )
    common |= dict(controls={"wrong rate": {"rate": 2.0}}, bounds="derived")
    claims = [jd.Claim(id=f"a.{name}", **common) for name in ("late", "early", "other")]
    page = jd.Theory(title="A theory", topics={"Beginning": ("early",), "End": ("late",)})
    monkeypatch.setattr(library, "theory", lambda prefix: page)
    monkeypatch.setattr("jaxdyn.report.catalogue.topic", lambda claim: claim.id.split(".")[1])
    headings = re.findall(r"^#+ .*$", catalogue(claims), re.M)[1:]
    assert headings == ["## a", "### `a.other`", "### Beginning", "#### `a.early`", "### End", "#### `a.late`"]


def test_a_theory_is_introduced_by_its_title_page():
    claim = next(iter(all_claims(theories={EXAMPLE}).values()))
    text, page = catalogue([claim]), library.theory(EXAMPLE)
    (first, *_) = library.papers(EXAMPLE)
    assert (
        f"## {EXAMPLE}\n\n**{page.title}**\n\n{page.about}\n\n- [{first.title}]({first.url}), {first.authors}, {first.venue}\n"
        in text
    )
