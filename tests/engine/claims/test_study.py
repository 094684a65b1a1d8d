"""Studies make claims: what is said once is shared, what a claim names itself goes first."""

import dataclasses

import pytest

import jaxdyn as jd
from jaxdyn.engine.claims.study import Own
from tests.engine.handmade import doubled


def judge(ds):
    return [jd.at_most("relative error", jd.relative_error(ds, "x", "entry"), 0.01)]


@pytest.fixture
def study(toys):
    grid = jd.grid(toys.Toy, lr=[0.01, 0.02])
    return jd.Study(
        trial=toys.decay,
        quick=toys.GRID,
        paper=grid,
        seeds=8,
        paper_seeds=64,
        source="a paper",
        judge=judge,
        form="derived",
        evidence="algebra",
        bounds="derived",
    )


def test_a_claim_takes_what_the_study_says(study, toys):
    claim = study.claim(id="toy.law", title="The law", statement="It holds.", controls={"doubled": doubled})
    assert (claim.trial, claim.quick, claim.paper, claim.judge) == (toys.decay, toys.GRID, study.paper, judge)
    assert (claim.seeds, claim.paper_seeds, claim.source, claim.form, claim.expected) == (8, 64, "a paper", "derived", "upheld")


def test_a_claims_own_fields_go_first(study):
    other = study.paper
    claim = study.claim(
        id="toy.law",
        title="The law",
        statement="",
        controls={"doubled": doubled},
        seeds=3,
        source="another",
        quick=other,
        min_ok=0.5,
    )
    assert (claim.seeds, claim.source, claim.quick, claim.min_ok) == (3, "another", other, 0.5)
    assert study.claim(id="toy.open", title="The law", statement="", expected="measured").controls == {}


def test_most_and_the_set_up_are_shared(study):
    shared = dataclasses.replace(study, max_seeds=32, tested="{seeds} starts.")
    parts = {"id": "toy.law", "title": "The law", "statement": "", "controls": {"doubled": doubled}}
    assert (shared.claim(**parts).max_seeds, shared.claim(**parts).tested) == (32, "{seeds} starts.")
    own = shared.claim(**parts, max_seeds=16, tested="Other.")
    assert (own.max_seeds, own.tested) == (16, "Other.") and study.claim(**parts).max_seeds is None


def test_as_printed_is_refuted_beside_its_sibling(study):
    law = study.claim(id="toy.law", title="The law", statement="It holds.", controls={"doubled": doubled}, caption="Axes.")
    printed = law.as_printed(
        id="toy.law_as_printed", form="printed", printed="x", title="As printed", statement="As printed.", source="eq. 7"
    )
    assert (printed.form, printed.counterpart, printed.sibling) == ("printed", "derived", "toy.law")
    assert (printed.expected, printed.controls, printed.source, printed.caption) == ("refuted", {}, "eq. 7", "Axes.")
    assert (printed.trial, printed.quick, printed.judge, printed.seeds) == (law.trial, law.quick, law.judge, law.seeds)
    outcome = jd.verify(printed)
    assert outcome.verdict == "refuted" and all(c.passed for c in outcome.counterpart_checks)


def test_a_claim_needs_a_judge_and_a_plain_id(study, toys):
    bare = jd.Study(trial=toys.decay, quick=toys.GRID, source="")
    with pytest.raises(jd.UsageError, match="toy.law has no judge"):
        bare.claim(id="toy.law", title="The law", statement="")
    for odd in ("law", "toy.", "toy.a b", 'toy."x"', "toy.a.b", "tøy.law"):
        with pytest.raises(jd.UsageError, match="is not allowed: it is theory.claim"):
            study.claim(id=odd, title="The law", statement="", controls={"doubled": doubled})


def test_an_argument_that_claims_do_not_have_is_refused(study):
    with pytest.raises(jd.UsageError, match="control= is not allowed: a claim of a study takes id, title, statement, judge,"):
        study.claim(id="toy.law", title="The law", statement="", control={"doubled": doubled})
    with pytest.raises(jd.UsageError, match="trial= is not allowed"):
        study.claim(id="toy.law", title="The law", statement="", trial=study.trial)


def test_everything_but_the_trial_and_the_sibling_can_be_a_claims_own():
    """The one list of arguments is that of a claim's fields."""
    assert {field.name for field in dataclasses.fields(jd.Claim)} - Own.__annotations__.keys() == {"trial", "sibling"}
    assert Own.__annotations__.keys() <= {field.name for field in dataclasses.fields(jd.Claim)}
