"""Controls and rivals as a referee reads them: straw men are found, and those of right claims are not accused."""

import math

import pytest

import jaxdyn as jd
from jaxdyn.attacks.opponents import ask, breaking_nothing, changed, inside
from tests.engine.handmade import Fields, case, data, doubled, judge, law, scattered, subjects

OFF = {"nothing moves": jd.off(predicted_z=0.0)}
TWO = jd.grid(Fields, lr=[0.1, 0.2])


def texts(claim, *args, **runs):
    """What is found, but for names of controls, which are short here."""
    return [f.text for f in ask(case(claim, *args, **runs)).findings if not f.text.endswith("(breaks)")]


def test_a_right_claim_has_no_finding():
    answer = ask(case(law(rivals=OFF)))
    assert answer.outcome == "noticed" and answer.facts["margins"]["relative error"]["opponent"] == "doubled"
    assert "mechanism switched off: 1 of 1; nearest is 'doubled' to 'relative error', at" in answer.detail


def test_the_margin_is_the_distance_beyond_the_bound_over_the_own_distance_from_it():
    margin = ask(case(law())).facts["margins"]["relative error"]["margin"]
    runs = case(law()).result
    own, other = runs.checks[0].value, runs.controls[0].checks[0].value
    assert math.isclose(margin, (other - 0.01) / (0.01 - own))


# controls that are settings


@pytest.mark.parametrize(
    ("breach", "fields"),
    [
        ({"decay": 0.5}, ["decay"]),
        ({"lr": 0.1}, []),
        ({"lr": 0.1, "width": 32}, ["width"]),
        ({"lr": [0.1, 0.3]}, ["lr"]),
        ({"task": "addition", "width": 16}, []),
        ({"task": "product", "decay": 1}, ["task", "decay"]),
    ],
)
def test_a_field_is_changed_where_it_takes_values_that_the_grid_lacks(breach, fields):
    assert list(changed(TWO, breach)) == fields


@pytest.mark.parametrize(
    ("values", "holds", "expected"), [((0.15,), {}, True), ((0.3,), {}, False), ((0.3,), {"lr": (0, 1)}, True)]
)
def test_what_is_stated_is_the_span_of_swept_numbers_and_what_is_held(values, holds, expected):
    assert inside(law(holds=holds), "lr", values) is expected


def test_words_and_fixed_numbers_are_outside():
    assert not inside(law(), "task", ("product",)) and not inside(law(), "decay", (0.5,))
    assert not inside(law(), "width", (16,)), "a number that is not swept has no span"


def test_several_fields_at_once_need_a_reason():
    both = {"decay": 1.0, "task": "product"}
    assert texts(law(controls={"both": both})) == ["control 'both' changes 2 fields at once (decay, task) and does not say why"]
    assert texts(law(controls={"both": jd.Control(both, why="the task has no decay of its own")})) == []
    assert texts(law(controls={"one": {"lr": 0.1, "task": "product"}})) == [], "it keeps one of the claim's own rates"


SAID = "With Adam at $\\rho < 1$ the entries of the network rotate, to 1%."


@pytest.mark.parametrize(
    ("control", "found"),
    [
        ({"rotation left out": {"decay": 1.0}}, None),
        ({"$\\rho = 2$": doubled}, None),
        ({"half of them": {"lr": 0.7}}, "names no words of the claim, and no assumption, that it breaks (breaks)"),
        ({"all as it was": doubled}, "names no words of the claim, and no assumption, that it breaks (breaks)"),
        ({"sign descent": jd.Control({"task": "sign"}, breaks="with Adam")}, None),
        (
            {"sign descent": jd.Control({"task": "sign"}, breaks="with momentum")},
            "breaks 'with momentum', which the claim does not say",
        ),
        ({"strong noise": {"decay": 1.0}}, None),
    ],
)
def test_a_control_names_the_words_or_the_assumption_that_it_breaks(control, found):
    fields = {"statement": SAID, "controls": control, "assumes": jd.below("noise", 1.0) if "strong noise" in control else ()}
    told = [f.text for f in breaking_nothing(law(**fields))]
    assert told == ([] if found is None else [f"control {next(iter(control))!r} {found}"])


def test_a_control_inside_the_domain_is_a_counterexample():
    (text,) = texts(law(controls={"between": {"lr": 0.15}}))
    assert text == "control 'between' lies inside what the claim states (lr=0.15 in 0.1 to 0.2): a counterexample"
    (text,) = texts(law(controls={"held": {"decay": 1}}, holds={"decay": (0, 2)}))
    assert "decay=1 in 0 to 2" in text
    (text,) = texts(law(controls={"one": {"lr": 0.2}}))
    assert "it changes no field" in text
    assert texts(law(controls={"outside": {"lr": 0.4}})) == []
    assert texts(law(controls={"between": jd.Control({"lr": 0.15}, why="its data are of another kind")})) == []


# checks


def test_a_check_that_rejects_nothing_but_the_mechanism_switched_off():
    two = lambda ds: [*judge(ds), jd.at_least("size", abs(ds.predicted_z), 1.0)]  # noqa: E731
    answer = ask(case(law(judge=two, rivals=OFF)))
    assert [f.text for f in answer.findings] == [
        "check 'size' rejects no control and no rival but the mechanism switched off ('nothing moves')"
    ]
    half = {"half": lambda ds: ds.assign(predicted_z=ds.predicted_z / 4)}
    assert ask(case(law(judge=two, rivals=OFF | half))).outcome == "noticed"


def test_a_refuted_form_is_asked_with_its_counterpart():
    runs = data(0.001, forms={"derived": 1.0, "printed": 2.0})
    printed = law(form="derived").as_printed(id="toy.law_as_printed", title="t", statement="s", form="printed", printed="eq. (1)")
    assert ask(case(printed, runs)).outcome == "not applicable"


# measured claims


def measured(**fields):
    return law(expected="measured", **({"controls": {}} | fields))


def test_a_measured_claim_on_a_network_is_told_apart_from_nothing():
    made = measured(evidence="network", rivals={"half": {"ratio": 0.5}})
    assert subjects(ask(case(made, scattered()))) == ["nothing"]
    assert subjects(ask(case(measured(evidence="network"), scattered()))) == ["nothing", "ratio"]
    both = measured(evidence="network", rivals={"half": {"ratio": 0.5}, "no ratio": jd.off({"ratio": 1.0})})
    answer = ask(case(both, scattered()))
    assert answer.outcome == "noticed" and answer.facts["not told apart from nothing"] == []


def test_an_open_question_of_algebra_needs_no_opponents_but_sharp_ones():
    assert ask(case(measured(), scattered())).outcome == "noticed"
    assert subjects(ask(case(measured(rivals={"no ratio": jd.off({"ratio": 1.0})}), scattered()))) == ["ratio"]


def test_what_is_like_nothing_is_shown():
    made = measured(evidence="network", rivals={"no ratio": jd.off({"ratio": 1.5}), "half": {"ratio": 0.5}})
    assert ask(case(made, scattered())).facts["not told apart from nothing"] == ["ratio"]


def test_an_opponent_that_would_agree_with_the_record_is_not_told_apart():
    (own,) = case(measured(), scattered()).result.readings
    low, high = own.ends
    near = high + 0.2 * (high - own.value)  # outside the interval, inside that of a repetition
    made = measured(rivals={"near": {"ratio": near}}, recorded={"ratio": (low, own.value, high)})
    runs = case(made, scattered())
    assert runs.result.rivals[0].apart == ["ratio"] and subjects(ask(runs)) == ["ratio"]
    far = measured(rivals={"far": {"ratio": near + high - low}}, recorded={"ratio": (low, own.value, high)})
    assert ask(case(far, scattered())).outcome == "noticed"


def test_numbers_that_no_run_can_have_are_found():
    share = lambda ds: [jd.at_least("share of good entries", (abs(ds.measured_z) > 0).mean(), 0.5)]  # noqa: E731
    answer = ask(
        case(
            law(
                judge=share,
                controls={"no entries": lambda ds: ds.assign(measured_z=0 * ds.measured_z)},
                rivals={"more": {"share of good entries": -1.0}},
            )
        )
    )
    assert [f.text for f in answer.findings] == [
        "rival 'more' gives -1 for 'share of good entries', which no run can: it lies from 0 to 1"
    ]


def test_an_opponent_that_changes_nothing_is_found():
    idle = lambda ds: ds.assign(extra=ds.measured_z * 0)  # noqa: E731
    told = texts(law(rivals=OFF | {"another theory": idle}))
    assert "'another theory' changes no number that a check compares" in told
