"""What words promise is decided by a check that rejects an opponent, or is found."""

import pytest

import jaxdyn as jd
from jaxdyn.attacks.words import ask
from tests.engine.handmade import Fields, case, data, judge, law, scattered, subjects

LARGEST = {"title": "The measured entry is the largest"}
DECIDES = {"largest": ("relative error", "doubled")}


def means(ds):
    """Checks a mean over runs."""
    return [jd.mean_within("mean error", abs(ds.measured_z / ds.predicted_z - 1).mean("entry"), over=["lr", "seed"], high=0.6)]


def share(low):
    """A judge of the share of runs."""
    return lambda ds: [jd.at_least("share of good runs", float((abs(ds.measured_z / ds.predicted_z - 1) < 0.1).mean()), low)]


def texts(answer):
    return [f.text for f in answer.findings]


def test_a_right_claim_has_no_finding():
    answer = ask(case(law()))
    assert answer.outcome == "noticed" and answer.detail == "no word promises much"


def test_a_word_that_nothing_decides():
    (text,) = texts(ask(case(law(**LARGEST))))
    assert text.startswith("'largest' promises much, and nothing says which check decides it")


def test_a_word_that_a_check_decides():
    answer = ask(case(law(**LARGEST, decides=DECIDES)))
    assert answer.outcome == "noticed" and answer.detail == "words that promise much and are decided: 1 of 1"
    assert answer.facts["promises"] == {"largest": {"check": "relative error", "opponent": "doubled"}}
    assert ask(case(law(**LARGEST, decides={"the largest": ("relative error", "doubled")}))).outcome == "noticed"


@pytest.mark.parametrize(
    ("decides", "text"),
    [
        ({"smallest": ("relative error", "doubled")}, "names a word that stands neither in the title nor in the statement"),
        ({"largest": ("another", "doubled")}, "names a check that there is not: 'another'"),
        ({"largest": ("relative error", "halved")}, "names neither a control nor a rival: 'halved'"),
        ({"largest": ("size", "doubled")}, "'size' does not reject 'doubled'"),
    ],
)
def test_entries_that_decide_nothing(decides, text):
    two = lambda ds: [*judge(ds), jd.at_least("size", ds.measured_z, 0.0)]  # noqa: E731
    negative = {"negative": lambda ds: ds.assign(measured_z=-ds.measured_z)}
    made = law(**LARGEST, judge=two, rivals={}, controls={**law().controls, **negative}, decides=decides)
    assert any(text in each for each in texts(ask(case(made))))


def test_every_run_is_decided_by_a_check_of_each_run():
    every = law(statement="The measured entries are the predicted ones in every run.")
    assert ask(case(every)).facts["promises"] == {"every run": {"check": "relative error", "opponent": "doubled"}}
    blind = law(statement="The measured entries are the predicted ones in every run.", judge=means)
    assert subjects(ask(case(blind, scattered(0.1, 0.01)))) == ["every run"], "a mean does not speak for each of its runs"


def test_every_entry_is_decided_by_its_axis_or_its_name():
    assert ask(case(law(statement="It is so for all rates."))).outcome == "noticed"
    assert subjects(ask(case(law(statement="It is so for all widths.")))) == ["all widths"]
    named = lambda ds: [jd.at_most("error, every width", float(jd.relative_error(ds, "z", "entry").max()), 0.01)]  # noqa: E731
    assert ask(case(law(statement="It is so for all widths.", judge=named))).outcome == "noticed"


def test_most_is_decided_by_a_share_of_a_half():
    most = {"statement": "In most runs the entries are the predicted ones."}
    assert ask(case(law(**most, judge=share(0.5)))).outcome == "noticed"
    assert subjects(ask(case(law(**most, judge=share(0.2))))) == ["most runs"]


def test_titles_of_measured_claims_assert_nothing():
    made = {"expected": "measured", "controls": {}}
    assert subjects(ask(case(law(**made, title="The ratio rises late"), scattered()))) == ["title"]
    assert ask(case(law(**made, title="How late the ratio rises"), scattered())).outcome == "noticed"


def test_a_measured_claim_asks_of_all_and_every():
    made = {"expected": "measured", "controls": {}}
    assert ask(case(law(**made, statement="The ratio of all entries in every run."), scattered())).outcome == "noticed"


def test_symbols_are_defined():
    assert subjects(ask(case(law(statement="It is so for $a b < 1$.")))) == ["$a$", "$b$"]
    assert ask(case(law(statement="It is so for $a b < 1$.", tested="Of a nodes $a$, and $b$ of others."))).outcome == "noticed"


def test_derived_bounds_say_from_what():
    (text,) = texts(ask(case(law(bounds="derived"))))
    assert 'bounds="derived: from …"' in text
    assert ask(case(law(bounds="paper"))).outcome == "noticed"


def test_a_refuted_form_is_asked_for_its_symbols_and_its_limit():
    runs = data(0.001, lr=(0.1, 0.8), forms={"derived": 1.0, "printed": 2.0})
    derived = law(form="derived", bounds="derived", quick=jd.grid(Fields, lr=[0.1, 0.8]))
    printed = derived.as_printed(
        id="toy.law_as_printed", title="Printed: the largest", statement="$a b$", form="printed", printed="eq. (1)"
    )
    answer = ask(case(printed, runs))
    assert subjects(answer) == ["$a$", "$b$"] and answer.facts["misprint"] == "fails against an exact formula"
