"""Parts of a claim: fields of codes, roles of numbers, and studies."""

import dataclasses

import jax
import pytest

import jaxdyn as jd
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims import ranges
from jaxdyn.engine.claims.grid import field_table
from jaxdyn.engine.claims.study import Own
from tests.engine.handmade import doubled

# Switches by themselves; how settings hold and trace them is tested with settings.


def test_a_switch_of_another_kind_is_another():
    assert jd.Code.of("b", ("a", "b")) == jd.Code(1, ("a", "b")) and hash(jd.Code.of("b", "ab")) == hash(jd.Code(1, ("a", "b")))
    assert jd.Code(1, ("a", "b")) != jd.Code(1, ("a", "c")) and jd.Code(1, ("a", "b")) != jd.Code(0, ("a", "b"))


def test_a_switch_keeps_its_names_through_a_tree():
    switch = jd.Code.of("b", ("a", "b"))
    leaves, tree = jax.tree.flatten(switch)
    assert leaves == [1] and jax.tree.unflatten(tree, leaves) == switch and str(switch) == "b"
    assert str(jax.tree.unflatten(tree, [None])) == "one of a, b"


def test_a_switch_has_no_other_names():
    with pytest.raises(jd.UsageError, match="'c' is not allowed: it is one of a, b"):
        jd.Code.of("c", ("a", "b"))


# Roles of a setting's numbers: declared, or by their names.


@jd.setting
class Run:
    """Numbers of several roles, and what is no number."""

    lr: jd.Swept = jd.field(0.1, above=0)
    eta_z: jd.Swept = 1.0
    code_lr: float = 0.1
    rate: int = jd.field(2, role="none")
    rate_spread: jd.Swept = 0.0
    every: jd.Swept = 10.0
    shrink: jd.Swept = jd.field(0.5, at_least=0, role="treatment")
    width: int = 8
    order: jd.Code = jd.code("one", "other")
    noisy: bool = False
    steps_of: tuple[int, ...] = (1, 2)
    dtype: str = "float64"


@jd.setting
class Counted(Run):
    """The number of steps does not depend on the records."""

    steps: int = 100


@jd.setting
class Declared(Run):
    """A time with a name of its own."""

    settle: int = jd.field(100, role="time")


def test_names_tell_roles_unless_they_are_declared():
    assert ranges.roles_of(Run) == {
        "lr": "rate",
        "eta_z": "rate",
        "code_lr": "rate",
        "rate": "none",
        "rate_spread": "none",
        "every": "time",
        "shrink": "treatment",
        "width": "none",
    }
    assert ranges.role_of(Run, "order") is None and ranges.role_of(Run, "steps_of") is None


@pytest.mark.parametrize(("setting", "total"), [(Counted, "steps"), (Declared, "settle")])
def test_steps_between_records_are_no_time_where_the_number_of_steps_is_given(setting, total):
    found = ranges.roles_of(setting)
    assert (found["every"], found[total]) == ("none", "time")
    assert found["rate"] == "none", "a declaration is inherited"


def test_spans_do_not_count_steps():
    assert [ranges.counts_steps(name) for name in ("steps", "every", "code_steps", "horizon", "span")] == [True] * 3 + [False] * 2


def test_the_table_of_fields_shows_the_roles():
    table = {row["name"]: row["role"] for row in field_table(jd.grid(Run))}
    assert table["lr"] == "rate" and table["width"] == "none" and table["order"] is None


def test_what_is_trained_has_a_rate_or_a_time():
    """Every setting of network claims tells how long training lasts, or with what rate, but for those whose trial fixes both."""
    settings = {c.quick.setting for c in registry.all_claims().values() if c.evidence == "network"}
    silent = {s.__module__.partition("theories.")[2] for s in settings if not {"rate", "time"} & set(ranges.roles_of(s).values())}
    assert silent == {"scal.trained", "scal.whitebox"}


# Studies make claims: what is said once is shared, what a claim names itself goes first.


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
