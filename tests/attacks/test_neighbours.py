"""Neighbours: laws that hold at one setting only are found; right laws stand, and what a claim excludes is not asked."""

import dataclasses
from typing import Literal

import jax.numpy as jnp
import pytest

import jaxdyn as jd
from jaxdyn.attacks import neighbours
from jaxdyn.engine.catalogue import registry
from tests.attacks import trained

NARROW = jd.grid(trained.Fit, width=1)


@pytest.fixture
def twice(monkeypatch):
    """One neighbour per number."""
    monkeypatch.setattr(neighbours, "FACTORS", (2.0,))


def settings(case, field):
    return [one.text for one in neighbours.neighbours(case) if one.field == field]


def test_a_right_law_stands(twice):
    answer = neighbours.ask(trained.case(quick=NARROW))
    assert answer.outcome == "noticed" and answer.facts["left_out"] == [], answer
    assert {one["field"] for one in answer.facts["asked"]} == {"curvature", "width", "lr"}


def test_a_law_of_one_setting_is_found(twice):
    answer = neighbours.ask(trained.case(judge=judge_at, rivals={"nothing": jd.off({"share left": 1.0})}, controls=SLOW))
    assert {"lr", "curvature"} <= {f.subject for f in answer.findings}
    assert "share left" in answer.findings[0].text and " = " in answer.findings[0].text


def judge_at(ds):
    """How much of the distance is left, which depends on rate, curvature and steps."""
    return [jd.within("share left", ds.measured_distance.isel(record=-1) / ds.measured_distance.isel(record=0), 0.01, 0.02)]


SLOW = {"no steps": {"steps": 1}}


def test_what_holds_is_tested_at_its_ends(twice):
    fields = {"judge": judge_at, "rivals": {"nothing": jd.off({"share left": 1.0})}, "controls": SLOW}
    case = trained.case(**fields, holds={"lr": (0.098, 0.102), "curvature": (0.5, 1.0)})
    assert settings(case, "lr") == ["lr = 0.098", "lr = 0.102"]
    answer = neighbours.ask(case)
    found = {f.subject for f in answer.findings}
    assert "lr" not in found and "curvature" in found


@pytest.mark.parametrize(
    ("field", "texts"),
    [
        ("width", ["width = 2", "width = 8", "width = 40", "width = 1"]),
        ("steps", []),  # of training: asked by another attack
        ("lr", ["lr = 0.05 (with steps = 80)", "lr = 0.2", "lr = 1"]),
        ("noise", []),  # it is zero
        ("doubled", []),  # a switch
    ],
)
def test_numbers_that_a_claim_fixes(field, texts):
    assert settings(trained.unrun(), field) == texts


def test_axes_are_extended():
    grid = jd.grid(trained.Fit, curvature=[0.5, 1.0], noise=[0.0, 0.1], width=[1, 3])
    case = trained.unrun(quick=grid, controls={"double": {"doubled": 1.0}})
    assert settings(case, "curvature") == ["curvature also at 0.25 and 2"]
    assert settings(case, "noise") == ["noise also at 0.2"], "it begins at 0"
    assert settings(case, "width") == ["width also at 6"], "there is no width below 1"
    case = trained.unrun(quick=grid, controls={"much noise": {"noise": 0.15}})
    assert settings(case, "noise") == [], "beyond a control nothing is asked"
    case = trained.unrun(quick=jd.grid(trained.Fit, doubled=[-1.0, 0.0, 0.5]))
    assert settings(case, "doubled") == ["doubled also at -2"], "a control lies above"


def test_values_at_and_beyond_a_control_are_not_asked():
    case = trained.unrun(controls={"wide": {"width": 8}, "both": {"curvature": 3.0, "doubled": 1.0}})
    assert settings(case, "width") == ["width = 2", "width = 1"]
    assert len(settings(case, "curvature")) == 3, "a control of two fields marks the end of neither"


def test_an_axis_that_fails_at_one_end_names_this_end(twice):
    grid = jd.grid(trained.Fit, curvature=[0.98, 1.02])
    fields = {"judge": judge_fast, "rivals": {"nothing": jd.off({"share left": 1.0})}, "controls": SLOW}
    answer = neighbours.ask(trained.case(quick=grid, **fields))
    found = [f for f in answer.findings if f.subject == "curvature"]
    assert len(found) == 1 and "curvature also at 0.49:" in found[0].text


def judge_fast(ds):
    """Little is left."""
    return [jd.at_most("share left", ds.measured_distance.isel(record=-1) / ds.measured_distance.isel(record=0), 0.02)]


def judge_lucky(ds):
    """A check of every run that some seeds fail, where the claim's own do not."""
    bad = (ds.width != 4) & (ds.seed < 4)
    return [*trained.judge(ds), jd.at_most("bad", bad.astype(float), 0.5)]


def test_what_fails_on_some_seeds_alone_is_no_finding(twice):
    case = trained.case(judge=judge_lucky, controls={"twice the rate in the law": {"doubled": 1.0, "width": 4}})
    answer = neighbours.ask(case)
    assert answer.outcome == "noticed" and "refuted" in {one["verdict"] for one in answer.facts["asked"]}


def test_the_budget_is_kept_and_the_rest_is_listed():
    case = trained.case(budget=0.0)
    answer = neighbours.ask(case)
    assert answer.outcome == "not asked" and len(answer.facts["left_out"]) == len(neighbours.neighbours(case))
    assert case.time.spent == 0


def test_measured_claims_assert_nothing():
    one = trained.measured(lambda ds: [jd.Reading("end", float(ds.measured_distance.mean()))], None)
    assert neighbours.ask(trained.unrun(of=one)).outcome == "not applicable"


def candidate(name, programs, running, compiling=1.0):
    return neighbours.Candidate(neighbours.Neighbour(name, 1.0, {}), None, dict.fromkeys(programs, compiling), running)


def test_what_costs_least_each_is_asked_first():
    alike = [candidate("a", ["p"], 3.0), candidate("b", ["p"], 1.0), candidate("c", ["p"], 1.0)]
    other = candidate("d", ["q"], 1.5)
    assert [one.neighbour.field for one in neighbours.affordable([*alike, other], 3.5)] == ["b", "c"]
    assert [one.neighbour.field for one in neighbours.affordable([*alike, other], 2.5)] == ["b"]
    assert neighbours.affordable([*alike, other], 1.0) == []


def test_settings_of_paper_scale_are_neighbours():
    quick = jd.grid(trained.Fit, curvature=[0.5, 1.0], lr=[0.05, 0.1])
    case = trained.unrun(quick=quick, paper=jd.grid(trained.Fit, curvature=[0.1, 0.5, 3.0], lr=[0.001, 0.1], width=[4, 64, 100]))
    assert settings(case, "curvature") == ["curvature also at 0.1 and 3"]
    assert settings(case, "lr") == ["lr also at 0.2"], "training at smaller rates would be cut short"
    assert settings(case, "width") == ["width = 2", "width = 8", "width = 40", "width = 64", "width = 100", "width = 1"]


def test_settings_of_other_claims_on_the_trial_are_neighbours(monkeypatch):
    other = trained.claim(id="toy.other", quick=jd.grid(trained.Fit, width=[4, 7], curvature=3.0))
    apart = trained.claim(id="toy.apart", quick=jd.grid(trained.Fit, width=9), trial=lambda s, key: trained.trial(s, key))
    monkeypatch.setattr(registry, "all_claims", lambda load, theories: {one.id: one for one in (other, apart)})
    assert settings(trained.unrun(), "width") == ["width = 2", "width = 8", "width = 40", "width = 7", "width = 1"]
    case = trained.unrun(quick=jd.grid(trained.Fit, curvature=[0.5, 1.0]))
    assert settings(case, "curvature") == ["curvature also at 0.25 and 3"]


@jd.setting
class Counts:
    """Numbers with ends."""

    pairs: int = jd.field(50, at_least=1)
    share: jd.Swept = jd.field(0.6, above=0, below=1)
    ratio: jd.Swept = jd.field(0.4, above=0, below=1)
    wrong: jd.Swept = jd.field(1.0, role="breach")
    free: jd.Swept = 0.6


def test_the_least_of_a_count_and_the_way_to_an_end_are_neighbours():
    case = trained.unrun(quick=jd.grid(Counts), controls={"all shares": {"free": 2.0}}, evidence="algebra")
    assert settings(case, "pairs") == ["pairs = 25", "pairs = 100", "pairs = 500", "pairs = 1"]
    assert "share = 0.8" in settings(case, "share")
    assert settings(case, "wrong") == [], "it is there for controls"
    assert "ratio = 0.7" not in settings(case, "ratio") and "free = 0.8" not in settings(case, "free")


@jd.setting
class Kinds:
    """A power of a number, by name."""

    kind: Literal["square", "cube", "fourth"] = "square"
    sign: jd.Code = jd.code("plus", "minus")
    exact: bool = True
    x: jd.Swept = jd.field(2.0, above=1)


def power(s, key):
    """A power, next to the square of the number."""
    value = s.x ** {"square": 2, "cube": 3, "fourth": 4}[s.kind]
    return jd.observables(predicted={"y": s.x**2}, measured={"y": value * jnp.where(s.sign == "plus", 1.0, -1.0)})


def judge_square(ds):
    """The size of the power, whatever its sign."""
    return [jd.at_most("error", abs(abs(ds.measured_y) - ds.predicted_y), 1e-9)]


KINDS = {
    "trial": power,
    "evidence": "algebra",
    "quick": jd.grid(Kinds),
    "seeds": 1,
    "judge": judge_square,
    "controls": {"another": lambda ds: ds.assign(measured_y=2 * ds.measured_y)},
    "rivals": {"the number": jd.swap(predicted_y=2.0)},
    "statement": "A power is the number times itself.",
}


def test_a_law_of_one_name_is_found_unless_the_statement_says_it(twice):
    answer = neighbours.ask(trained.case(**KINDS))
    assert sorted((f.subject, f.text.split(":")[0]) for f in answer.findings) == [
        ("kind", "refuted at kind = cube"),
        ("kind", "refuted at kind = fourth"),
    ]
    asked = {one["setting"]: one["verdict"] for one in answer.facts["asked"]}
    assert asked["sign = minus"] == asked["exact = false"] == "upheld"
    said = KINDS | {"statement": "The power called square is the number times itself, with a sign that is plus, if exact."}
    assert {one.field for one in neighbours.neighbours(trained.unrun(**said))} == {"x"}


def test_a_statement_may_write_a_formula_for_a_name():
    said = KINDS | {"statement": "The power $x^2$ is the number times itself, with the sign plus, if exact."}
    assert settings(trained.unrun(**said), "kind") == []
    assert neighbours.mentions("in the experiment", "exp") is False and neighbours.mentions("with exp attention", "exp")
    assert neighbours.mentions("nodes that are squared", "square") and not neighbours.mentions("unsquared", "square")


def test_a_name_of_a_control_ends_a_claim():
    case = trained.unrun(**KINDS | {"controls": {"cube": {"kind": "cube"}, "loose": {"exact": False}}})
    assert settings(case, "kind") == ["kind = fourth"] and settings(case, "exact") == []
    case = trained.unrun(**KINDS | {"quick": jd.grid(Kinds, kind=["square", "fourth"])})
    assert settings(case, "kind") == ["kind = cube"], "an axis of names"


@pytest.mark.parametrize(
    ("statement", "field", "values", "expected"),
    [
        ("After 200 steps at rate .003", "steps", (200,), True),
        ("After 200 steps at rate .003", "lr", (0.003,), True),
        ("After 200 steps at rate .003", "lr", (0.03,), False),
        ("At 1,200 steps", "steps", (1200,), True),
        ("At 1,200 steps", "steps", (200,), False),
        ("For two classes and three layers", "classes", (2,), True),
        ("For two classes and three layers", "layers", (3,), True),
        ("Two of them win", "classes", (2,), False),
        (r"With $\\eta = 1$", "eta", (1.0,), True),
        ("At 1 of them", "eta", (1.0,), False),
        ("Of ratios from .1 to 10", "ratio", (0.1, 1.0, 10.0), True),
        ("Of ratios up to 10", "ratio", (0.1, 1.0, 10.0), False),
        ("With 20% of the labels", "share", (0.2,), True),
        ("In arXiv:2305.16380", "steps", (16380,), False),
        ("Where $x^{3}$ is", "power", (3.0,), False),
    ],
)
def test_what_stands_in_the_statement_is_not_asked(statement, field, values, expected):
    claim = trained.case().claim
    assert neighbours.stated(dataclasses.replace(claim, title="A law", statement=statement, assumes=()), field, values) is expected
