"""Claims as they are written down: defaults, what is refused."""

import dataclasses

import numpy as np
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
        ({"assumes": print}, r"toy.made: assumes=<built-in function print> is not allowed: it is jd.above\(...\) or jd.below"),
        ({"statement": "worse by {WORSE:g}"}, "statement holds {WORSE:g} as it stands: the text lacks an f in front, or a value"),
        ({"title": "After {steps} steps"}, "title holds {steps} as it stands"),
        ({"assumes": None}, "assumes=None is not allowed"),
        ({"assumes": "step"}, "assumes='step' is not allowed"),
        ({"assumes": (jd.below("step", 1.0), 0.5)}, "or a tuple of them"),
        ({"min_ok": float("nan")}, "min_ok=nan is not allowed: it is a number from 0 to 1"),
        ({"min_ok": 2}, "min_ok=2 is not allowed: it is a number from 0 to 1"),
        ({"min_ok": None}, "min_ok=None is not allowed: it is a number from 0 to 1"),
        ({"sibling": print}, "it is a text or None"),
        ({"bounds": ["derived"]}, r"bounds=\['derived'\] is not allowed: it is 'paper', 'derived: from …' or jd.tuned"),
        ({"evidence": ["flow"]}, r"evidence=\['flow'\] is not allowed: it is one of model, network"),
        ({"expected": ["refuted"]}, r"expected=\['refuted'\] is not allowed: it is upheld, refuted or measured"),
        ({"recorded": 1.0, "expected": "measured"}, "recorded=1.0 is not allowed: it is a dict or None"),
        ({"controls": {"off": 1}}, "control 'off' is 1, which is not allowed: a control is a dict of fields"),
        ({"controls": {"off": {1: 2}}}, r"control 'off' is {1: 2}, which is not allowed: a control is a dict of fields"),
        ({"controls": {"": {"lr": 1.0}}}, "controls have names; '' is none"),
    ],
)
def test_claims_that_nothing_could_decide_are_refused(claim, fields, message):
    with pytest.raises(jd.UsageError, match=message):
        claim(**fields)


@pytest.mark.parametrize(
    ("assumptions", "words"),
    [
        ((jd.above("a", 2), jd.below("a", 1)), "a > 2 and a < 1"),
        ((jd.below("a", 1), jd.below("b", 5), jd.above("a", 1)), "a > 1 and a < 1"),  # bounds are strict: no number is between
        ((jd.above("a", 0), jd.above("a", 3), jd.below("a", 4), jd.below("a", 2)), "a > 3 and a < 2"),
    ],
)
def test_assumptions_that_no_run_can_meet_are_refused(claim, assumptions, words):
    with pytest.raises(jd.UsageError, match=f"^toy.made: assumes {words}, which is not allowed: no run can meet both$"):
        claim(assumes=assumptions)


@pytest.mark.parametrize("value", [np.zeros((2, 2)), {1: np.eye(3)}, object(), 10**5000, "two\nlines" * 99], ids=type)
@pytest.mark.parametrize("field", ["id", "title", "quick", "trial", "plot", "assumes", "min_ok", "expected", "bounds", "evidence"])
def test_a_refusal_is_one_short_line(claim, field, value):
    made = claim()
    with pytest.raises(jd.UsageError) as refusal:
        dataclasses.replace(made, **{field: value})
    assert len(str(refusal.value).splitlines()) == 1 and len(str(refusal.value)) < 250


def test_assumptions_are_a_tuple(claim):
    one, other = jd.below("step", 1.0), jd.above("step", 0.1)
    assert claim(assumes=[jd.below("step", 1.0), jd.above("size", 2.0)]).assumes, "bounds of different numbers"
    assert claim(assumes=one).assumes == (one,) and claim(assumes=[one, other]).assumes == (one, other)
    with pytest.raises(jd.UsageError, match="name=3 is not allowed"):
        jd.below(3, 1.0)


def test_what_a_control_says_of_itself_is_true_or_false():
    with pytest.raises(jd.UsageError, match="diverges=x is not allowed: diverges is True or False"):
        jd.Control({"lr": 1e3}, diverges="x")


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
    printed = claim(form="derived", decides={"all": ("a", "b")}).as_printed(
        id="toy.made_naive", title="Naive", statement="", form="printed"
    )
    assert printed.rivals == {} == printed.decides


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
