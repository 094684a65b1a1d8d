"""Claims as they are written down: defaults, what is refused."""

import pytest

import jaxdyn as jd
from tests.engine.handmade import doubled


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": "no_theory"}, "it is theory.claim"),
        ({"id": "toy.a b"}, "it is theory.claim"),
        ({"expected": "true"}, "it is upheld, refuted or measured"),
        ({"expected": "refuted"}, "names the counterpart form"),
        ({"controls": {}}, "at least one negative control"),
    ],
)
def test_claims_that_nothing_could_decide_are_refused(claim, fields, message):
    with pytest.raises(jd.UsageError, match=message):
        claim(**fields)


def test_breaches_become_controls(claim):
    blown = jd.Control({"lr": 1e3}, diverges=True)
    made = claim(controls={"doubled": doubled, "sign": {"optimizer": "sign"}, "blown": blown})
    assert made.controls == {"doubled": jd.Control(doubled), "sign": jd.Control({"optimizer": "sign"}), "blown": blown}
    assert [c.diverges for c in made.controls.values()] == [False, False, True]


def test_scales(claim, toys):
    paper = jd.grid(toys.Toy, rate=[3.0])
    plain, both = claim(seeds=5), claim(seeds=5, paper=paper, paper_seeds=7)
    assert plain.theory == "toy"
    assert [(plain.grid(s), plain.seed_count(s)) for s in ("quick", "paper")] == [(toys.GRID, 5)] * 2
    assert [(both.grid(s), both.seed_count(s)) for s in ("quick", "paper")] == [(toys.GRID, 5), (paper, 7)]


def test_a_printed_form_shares_runs_and_judge_and_swaps_the_forms(claim):
    made = claim(form="derived", rivals={"zero": jd.off(predicted_z=0.0)}, caption="both", evidence="network")
    printed = made.as_printed(
        id="toy.made_as_printed", title="As printed", statement="As printed.", form="printed", printed="eq. (1)", source="p. 3"
    )
    assert (printed.form, printed.counterpart, printed.sibling, printed.expected) == ("printed", "derived", made.id, "refuted")
    assert (printed.trial, printed.quick, printed.judge, printed.caption) == (made.trial, made.quick, made.judge, "both")
    assert printed.controls == {} and printed.rivals == {} and printed.source == "p. 3" and made.source == ""
    assert claim(form="derived").as_printed(id="toy.made_naive", title="Naive", statement="", form="printed").rivals == {}


@pytest.mark.parametrize("title", ["", "x" * 71, "two\nlines", " a space before", "two  spaces", "a law of $x$", "tab\t"])
def test_a_title_is_one_short_line_without_latex(claim, title):
    with pytest.raises(
        jd.UsageError, match=r"title=.* is not allowed: it is one line of 1 to 70 characters without LaTeX \(\d+ given"
    ):
        claim(title=title)


def test_titles(claim, toys):
    assert claim(title="x" * 70).title == "x" * 70 and claim(title="Größe λ").title == "Größe λ"
    with pytest.raises(jd.UsageError, match="title=3 is not allowed: it is a text"):
        claim(title=3)
    parts = {"id": "toy.made", "statement": "", "source": "", "trial": toys.decay, "quick": toys.GRID, "judge": toys.close}
    with pytest.raises(TypeError, match="title"):
        jd.Claim(**parts, evidence="algebra", bounds="derived", controls=toys.OFF)
    printed = claim(form="derived").as_printed(id="toy.made_naive", title="As others have it", statement="", form="printed")
    assert printed.title == "As others have it"
    assert (
        jd.verify(claim(title="A law", form="derived", judge=toys.close, controls=toys.OFF), seeds=2).to_json()["title"] == "A law"
    )


def test_most_is_shared_with_the_printed_form(claim):
    made = claim(form="derived", seeds=4, max_seeds=32, tested="{seeds} seeds")
    printed = made.as_printed(id="toy.made_naive", title="Naive", statement="", form="printed")
    assert (printed.seeds, printed.max_seeds, printed.tested) == (4, 32, "{seeds} seeds")
