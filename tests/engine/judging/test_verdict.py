"""Verdicts on data made by hand: precedence, masking, forms, controls."""

import asyncio
import re

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.engine.judging.decision import Terms
from jaxdyn.engine.judging.verdict import decide
from jaxdyn.status import DIVERGED, MAX_STEPS
from tests.engine.handmade import data, doubled, failing, judge, reading

# Claims ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"controls": {}}, "needs at least one negative control"),
        ({"expected": "refuted"}, "names the counterpart"),
        ({"expected": "true"}, "it is upheld, refuted or measured"),
        ({"id": "nodot"}, "it is theory.claim, of letters"),
    ],
)
def test_incomplete_claims_are_refused(claim, fields, message):
    with pytest.raises(jd.UsageError, match=message):
        claim(**fields)


def test_measured_and_refuted_claims_need_no_controls(claim):
    assert claim(expected="measured", controls={}).theory == "toy"
    assert claim(expected="refuted", controls={}, form="printed", counterpart="derived").controls == {}


# Precedence: error > inconclusive > refuted > toothless > upheld ------------------------------------------------------


def test_upheld(claim):
    decision = decide(claim(), data(0.001), {})
    assert decision.verdict == "upheld" and decision.diverged == 0 and decision.message is None
    assert [c.passed for c in decision.checks] == [True] and decision.controls[0].rejected


def test_refuted(claim):
    decision = decide(claim(), data(0.02), {})
    assert decision.verdict == "refuted" and decision.controls[0].rejected


def test_refuted_comes_before_toothless(claim):
    harmless = {"harmless": lambda ds: ds.assign(measured_z=ds.predicted_z)}
    decision = decide(claim(controls=harmless), data(0.02), {})
    assert decision.verdict == "refuted" and not decision.controls[0].rejected


@pytest.mark.parametrize("controls", [{"harmless": lambda ds: ds}, {"doubled": doubled, "harmless": lambda ds: ds}])
def test_toothless_when_a_control_is_not_rejected(claim, controls):
    decision = decide(claim(controls=controls), data(), {})
    assert decision.verdict == "toothless"
    assert [c.rejected for c in decision.controls] == [name != "harmless" for name in controls]


def test_toothless_when_nothing_resolves(claim):
    """A judge that looks at a flag only: its control is rejected, but no distortion of numbers is."""

    def flagged(ds):
        return [jd.at_least("flag", float(ds.attrs.get("flag", 1)), 1)]

    decision = decide(claim(judge=flagged, controls={"unflagged": lambda ds: ds.assign_attrs(flag=0)}), data(), {})
    assert decision.controls[0].rejected
    assert decision.verdict == "toothless" and decision.resolution == {"scale": {}, "mix": {"unflagged": None}}


@pytest.mark.parametrize(
    ("failed", "needed", "verdict"),
    [(1, 1.0, "inconclusive"), (1, 0.8, "upheld"), (2, 0.75, "upheld"), (3, 0.75, "inconclusive"), (8, 0.0, "inconclusive")],
)
def test_too_few_ok_runs_are_inconclusive(claim, failed, needed, verdict):
    decision = decide(claim(min_ok=needed), data(status=failing(failed, MAX_STEPS)), {})
    assert decision.verdict == verdict and decision.diverged == failed
    if verdict == "inconclusive":
        assert f"{failed} of 8 runs {'is' if failed == 1 else 'are'} not ok (step limit reached)" in decision.message


def test_inconclusive_comes_before_refuted(claim):
    assert decide(claim(), data(0.02, status=failing(1)), {}).verdict == "inconclusive"


def test_a_judge_that_cannot_decide_is_inconclusive(claim):
    def undecided(ds):
        raise jd.Inconclusive("one step size makes no slope")

    decision = decide(claim(judge=undecided), data(), {})
    assert decision.verdict == "inconclusive" and decision.message == "one step size makes no slope"


def test_a_judge_that_raises_is_an_error_in_one_line(claim, toys):
    decision = decide(claim(judge=toys.raises), data(0.5, status=failing(0)), {})
    assert decision.verdict == "error" and "\n" not in decision.message
    assert decision.message.startswith("RuntimeError: the judge stumbled (") and decision.message.endswith(" in raises)")


@pytest.mark.parametrize("error", [IndexError("no"), KeyError("lr")])
def test_a_missing_entry_is_inconclusive_only_where_somebody_cut_the_data(claim, error):
    def missing(ds):
        raise error

    assert decide(claim(judge=missing), data(), {}).verdict == "error"
    assert decide(claim(judge=missing), data(), {}, Terms(narrowed=True)).verdict == "inconclusive"


MISTAKES = {  # what a judge does -> what the sentence begins with
    "a variable that the runs do not have": (
        lambda ds: ds["meaured_z"],
        "KeyError: the runs have no variable 'meaured_z'; did you",
    ),
    "the same as an attribute": (lambda ds: ds.meaured_z, "AttributeError: the runs have no variable 'meaured_z'; did you mean"),
    "an axis of another name": (lambda ds: ds.measured_z.sel(lrr=0.1), "KeyError: "),
    "a method of another name": (lambda ds: ds.measured_z.maen(), "AttributeError: 'DataArray' object has no attribute 'maen'"),
    "a function of another name": (lambda ds: np.maen(ds.measured_z), "AttributeError: module 'numpy' has no attribute 'maen'"),
    "a name of another spelling": (lambda ds: meaured, "NameError: name 'meaured' is not defined"),  # noqa: F821
    "a key of another spelling": (lambda ds: {"large": 1.0}["lrage"], "KeyError: 'lrage'"),
}


@pytest.mark.parametrize("narrowed", [False, True])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_authors_mistake_is_no_verdict_whatever_seeds_are_run(claim, mistake, narrowed):
    wrong, begins = MISTAKES[mistake]
    decision = decide(claim(judge=lambda ds: [jd.at_most("a", wrong(ds), 1.0)]), data(), {}, Terms(narrowed=narrowed))
    assert decision.verdict == "error" and decision.message.startswith(begins)
    assert "test_verdict.py:" in decision.message and "\n" not in decision.message


@pytest.mark.parametrize("mistake", [name for name in MISTAKES if "key" not in name])
@pytest.mark.parametrize("reached", ["resolution", "control"])
def test_a_mistake_that_only_changed_runs_reach_is_no_rejection(claim, mistake, reached):
    """On the runs themselves the judge is right: its wrong line is reached by what the engine asks of them besides."""
    wrong, begins = MISTAKES[mistake]

    def judged(ds):
        error = jd.relative_error(ds, "z", "entry")
        if "opponent" in ds.attrs if reached == "control" else float(np.nanmax(error)) > 0.5:
            wrong(ds)
        return [jd.at_most("relative error", error, 0.01)]

    decision = decide(claim(judge=judged), data(), {})
    assert decision.verdict == "error" and decision.message.startswith(begins)


def test_a_bare_check_is_an_error_that_says_what_to_return(claim):
    decision = decide(claim(judge=lambda ds: jd.at_most("a", 1.0, 2.0)), data(), {})
    assert decision.verdict == "error" and "returned one Check; it must return a list" in decision.message


@pytest.mark.parametrize("checks", [[], None])
def test_a_judge_without_checks_is_an_error(claim, checks):
    decision = decide(claim(judge=lambda ds: checks), data(), {})
    assert decision.verdict == "error" and "returned no checks" in decision.message


def test_a_control_that_raises_is_an_error(claim):
    def broken(ds):
        return ds.assign(predicted_z=ds.nothing)

    decision = decide(claim(controls={"broken": broken}), data(), {})
    assert decision.verdict == "error" and "nothing" in decision.message


def test_measured_claims_are_read_and_not_checked(claim):
    decision = decide(claim(expected="measured"), data(0.5), {})
    assert decision.verdict == "measured" and decision.checks == []
    (found,) = decision.readings
    assert (found.name, found.value, found.interval) == ("ratio", 1.5, (1.5, 1.5))
    assert decision.resolution == {"scale": {}, "mix": {}}, "nothing is rejected where nothing is claimed"
    assert decide(claim(expected="measured", judge=lambda ds: []), data(), {}).verdict == "error"


@pytest.mark.parametrize(
    ("expected", "answers", "words"),
    [
        ("measured", judge, "a measured claim has readings, which have no bound; 'relative error' is a check: jd.mean_reading"),
        ("measured", lambda ds: [*reading(ds), *judge(ds)], "'relative error' is a check"),
        ("measured", lambda ds: [jd.gate("trained", 1.0, at_least=0.5)], "gates only; a measured claim has at least one reading"),
        ("measured", lambda ds: reading(ds)[0], "the judge returned one Reading; it must return a list of checks"),
        ("upheld", reading, "'ratio' is a reading, which decides nothing; a claim to be upheld or refuted has checks"),
        ("upheld", lambda ds: [*reading(ds), *judge(ds)], "'ratio' is a reading, which decides nothing"),
    ],
)
def test_checks_are_of_claims_that_decide_and_readings_of_measured_ones(claim, expected, answers, words):
    decision = decide(claim(expected=expected, judge=answers), data(), {})
    assert decision.verdict == "error" and words in decision.message


# Masking --------------------------------------------------------------------------------------------------------------


def test_failed_runs_are_judged_by_nobody(claim):
    """The failed run's numbers are finite and wrong: only its status keeps it out."""
    error = np.zeros((2, 4, 1))
    error[0, 0] = 5.0
    seen = []

    def looking(ds):
        seen.append(ds)
        return judge(ds)

    decision = decide(claim(judge=looking, min_ok=0.5), data(error, status=failing(1)), {})
    assert decision.verdict == "upheld"
    assert np.isnan(seen[0].measured_z.values[0, 0]).all() and not np.isnan(seen[0].measured_z.values[1]).any()
    assert seen[0].status.values[0, 0] == DIVERGED, "the status itself is kept"


# Forms and counterparts -----------------------------------------------------------------------------------------------

FORMS = {"printed": 1.5, "derived": 1.0}


def test_the_judge_sees_one_form(claim):
    dims = []

    def looking(ds):
        dims.append(set(ds.dims))
        return judge(ds)

    assert decide(claim(judge=looking, form="derived"), data(forms=FORMS), {}).verdict == "upheld"
    assert all("form" not in d for d in dims)
    assert decide(claim(form="printed"), data(forms=FORMS), {}).verdict == "refuted"


@pytest.mark.parametrize("form", [None, "unheard"])
def test_a_claim_must_name_one_of_the_forms(claim, form):
    decision = decide(claim(form=form), data(forms=FORMS), {})
    assert decision.verdict == "error"
    assert ("must name one" if form is None else "unheard") in decision.message


def test_a_refutation_needs_its_counterpart_upheld(claim):
    printed = claim(expected="refuted", form="printed", counterpart="derived", controls={})
    decision = decide(printed, data(forms=FORMS), {})
    assert decision.verdict == "refuted" and [c.passed for c in decision.counterpart_checks] == [True]
    decision = decide(printed, data(forms=FORMS | {"derived": 1.2}), {})
    assert decision.verdict == "inconclusive" and "does not uphold the counterpart (derived)" in decision.message
    assert decide(printed, data(forms={"printed": 1.0, "derived": 1.0}), {}).verdict != "refuted", "both forms fit"


def test_a_counterpart_that_cannot_be_decided_is_inconclusive(claim):
    def picky(ds):
        if float(ds.predicted_z.max()) == 2.0:
            raise jd.Inconclusive("not on this form")
        return judge(ds)

    printed = claim(expected="refuted", form="printed", counterpart="derived", controls={}, judge=picky)
    assert decide(printed, data(forms=FORMS), {}).verdict == "inconclusive"


# Controls -------------------------------------------------------------------------------------------------------------


def test_controls_of_fields_are_judged_on_their_own_data(claim):
    fields = claim(controls={"adam": {"optimizer": "sign"}})
    assert decide(fields, data(), {"adam": data(0.5)}).verdict == "upheld"
    decision = decide(fields, data(), {"adam": data(0.001)})
    assert decision.verdict == "toothless" and decision.resolution["mix"] == {"adam": None}


def test_controls_select_the_claims_form(claim):
    fields = claim(form="derived", controls={"adam": {"optimizer": "sign"}})
    decision = decide(fields, data(forms=FORMS), {"adam": data(0.5, forms=FORMS)})
    assert decision.verdict == "upheld" and decision.resolution["mix"]["adam"] is not None


def test_a_control_whose_runs_merely_diverge_is_not_rejected(claim):
    fields = claim(controls={"fast": {"lr": 1.0}})
    decision = decide(fields, data(), {"fast": data(0.5, status=failing(8))})
    assert decision.verdict == "toothless" and decision.controls[0].reason == "all runs: diverged"


def test_some_diverged_runs_of_a_control_do_not_help_it(claim):
    fields = claim(controls={"fast": {"lr": 1.0}})
    error = np.zeros((2, 4, 1))
    error[0, 0] = 5.0  # wrong, but in the run that is not ok
    assert decide(fields, data(), {"fast": data(error, status=failing(1))}).verdict == "toothless"
    assert decide(fields, data(), {"fast": data(0.5, status=failing(1))}).verdict == "upheld"


def test_divergence_may_be_the_point_of_a_control(claim):
    fields = claim(controls={"fast": jd.Control({"lr": 1.0}, diverges=True), "doubled": doubled})
    decision = decide(fields, data(), {"fast": data(status=failing(8))})
    assert decision.verdict == "upheld" and decision.controls[0].rejected and decision.controls[0].checks[0].passed
    decision = decide(fields, data(), {"fast": data(0.5, status=failing(7))})
    assert decision.verdict == "toothless" and "some runs are ok" in decision.controls[0].reason


def test_a_control_on_which_the_judge_cannot_decide_is_not_rejected(claim):
    def picky(ds):
        if ds.attrs.get("cut"):
            raise jd.Inconclusive("too short")
        return judge(ds)

    decision = decide(claim(judge=picky, controls={"cut": lambda ds: ds.assign_attrs(cut=1)}), data(), {})
    assert decision.verdict == "toothless" and decision.controls[0].reason == "too short"


def writes(ds):
    ds["measured_z"] -= 1.0
    return [jd.at_most("difference", abs(ds.measured_z - ds.predicted_z), 1.5)]


def test_nobody_writes_into_what_is_judged_next(claim):
    """A judge, control or rival that works in place would make the data worse each time it is asked, and reject anything."""
    same = lambda ds: ds  # noqa: E731

    def writing(ds):
        ds["predicted_z"] *= 5
        return ds

    ds = data()
    for changed in (
        {"judge": writes},
        {"controls": {"first": writing, "same": same}},
        {"rivals": {"first": writing, "same": same}},
    ):
        decision = decide(claim(**changed), ds, {})
        assert decision.verdict == "error" and "output array is read-only" in decision.message
    assert ds.measured_z.identical(data().measured_z) and ds.measured_z.values.flags.writeable
    assert decide(claim(controls={"same": same}), ds, {}).verdict == "toothless"


UNUSABLE = {
    "a word": (lambda ds: "x", "str 'x'"),
    "nothing": (lambda ds: None, "NoneType None"),
    "no runs": (lambda ds: ds.isel(seed=slice(0, 0)), "predicted_z without any number"),
    "no number": (lambda ds: ds.assign(predicted_z=ds.predicted_z * np.nan), "predicted_z without any number"),
    "a variable less": (lambda ds: ds.drop_vars("measured_z"), "it without measured_z"),
    "nothing in it": (lambda ds: ds.drop_vars(list(ds)), "it without status"),
    "another status": (lambda ds: ds.assign(status=ds.status + 99), r"it with the status \[99\]"),
    "no status": (lambda ds: ds.assign(status=ds.status * np.nan), r"it with the status \[nan\]"),
}


@pytest.mark.parametrize("kind", ["controls", "rivals"])
@pytest.mark.parametrize("name", UNUSABLE)
def test_unusable_data_reject_nothing(claim, kind, name):
    """No check can tell them from the truth; the sentence names who returned them."""
    edit, words = UNUSABLE[name]
    decision = decide(claim(**{kind: {name: edit}}), data(), {})
    assert decision.verdict == "error", decision
    allowed = "it must return the Dataset with other numbers"
    if kind == "rivals" and name == "a variable less":
        words, allowed = "it without measured_z", "a rival replaces predictions"
    assert re.search(f"{kind[:-1]} '{name}' returned {words}.*; {allowed}", decision.message)
    assert "in <lambda>" in decision.message and "\n" not in decision.message


def test_a_form_that_the_trial_does_not_have_is_an_error(claim):
    decision = decide(claim(form="printed"), data(), {})
    assert (
        decision.verdict == "error" and "predicts no form 'printed': it has no axis of forms; leave out form=" in decision.message
    )


class Odd(BaseException):
    """Neither an Exception nor able to say what it is."""

    def __str__(self):
        raise RuntimeError("unsayable")


@pytest.mark.parametrize(
    "error", [Odd(), GeneratorExit(), asyncio.CancelledError(), BaseExceptionGroup("two", [Odd()]), SystemExit(0)]
)
def test_whatever_a_judge_raises_is_an_error_of_the_claim(claim, error):
    def raising(ds):
        raise error

    for changed in ({"judge": raising}, {"controls": {"one": raising}}, {"rivals": {"one": raising}}):
        decision = decide(claim(**changed), data(), {})
        assert decision.verdict == "error" and decision.message.startswith(type(error).__name__)


def test_a_rival_may_have_more_axes(claim):
    """A family of predictions is spread over an axis of its own."""
    more = lambda ds: ds.assign(predicted_z=(2 * ds.predicted_z).expand_dims(d=[1, 2]))  # noqa: E731
    decision = decide(claim(rivals={"more": more}), data(), {})
    assert decision.verdict == "upheld" and decision.rivals[0].rejected


def slowest(ds):
    return [jd.at_most("relative error", abs(ds.measured_z.isel(lr=0) / ds.predicted_z.isel(lr=0) - 1), 0.01)]


CUT = {
    "controls": lambda ds: doubled(ds.isel(lr=0, drop=True)),
    "rivals": lambda ds: ds.assign(predicted_z=2 * ds.predicted_z.isel(lr=0, drop=True)),
}


@pytest.mark.parametrize("kind", CUT)
def test_an_axis_less_is_the_edits_fault_only_if_the_judge_needs_it(claim, kind):
    edits = {"one": CUT[kind]}
    decision = decide(claim(judge=slowest, **{kind: edits}), data(), {})
    words = f"{kind[:-1]} 'one' returned predicted_z with the axes seed, entry, not lr, seed, entry; it must"
    assert decision.verdict == "error" and words in decision.message
    assert decide(claim(**{kind: edits}), data(), {}).verdict == "upheld"
