"""Rivals in verdicts: what they may change, what they may say, and what rejects them."""

import math
import re

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.engine.judging.verdict import by_cells, decide, judge_cell, with_silent_rivals
from tests.engine.handmade import data, doubled, judge

# rivals replace predictions


def recorded():
    return data(0.001).assign(start=(("lr", "seed"), np.ones((2, 4))), assumed_gap=(("lr", "seed"), np.full((2, 4), 0.5)))


OTHER = {
    "measured_z": lambda ds: ds.assign(measured_z=2 * ds.measured_z),
    "start": lambda ds: ds.assign(start=ds.start + 1e-12, predicted_z=2 * ds.predicted_z),
    "assumed_gap": lambda ds: ds.assign(assumed_gap=0 * ds.assumed_gap),
    "status": lambda ds: ds.assign(status=ds.status + 1),
}


@pytest.mark.parametrize("expected", ["upheld", "measured"])
@pytest.mark.parametrize("variable", OTHER)
def test_a_rival_that_changes_anything_else_is_refused(claim, expected, variable):
    decision = decide(claim(rivals={"another world": OTHER[variable]}, expected=expected), recorded(), {})
    words = f"rival 'another world' returned another {variable}; a rival replaces predictions (predicted_…) and leaves what was"
    assert decision.verdict == "error" and words in decision.message
    assert "measured alone; other data are a control's (" in decision.message and "in <lambda>" in decision.message
    assert decide(claim(controls={"another world": OTHER["measured_z"]}, expected=expected), recorded(), {}).controls[0].rejected


@pytest.mark.parametrize(
    "edit",
    [
        lambda ds: ds.assign(measured_z=ds.measured_z, predicted_z=2 * ds.predicted_z),
        lambda ds: ds.assign(measured_z=ds.measured_z + 0.0, predicted_z=2 * ds.predicted_z),  # the same numbers
        lambda ds: ds.assign(predicted_z=2 * ds.predicted_z, helper=ds.start),  # something new
        jd.swap(predicted_z=0.0),
        jd.scaled(predicted_z=2.0),
    ],
)
def test_a_rival_that_leaves_the_rest_as_it_is_is_judged(claim, edit):
    decision = decide(claim(rivals={"one": edit}), recorded(), {})
    assert decision.verdict == "upheld" and decision.rivals[0].rejected


def test_nan_that_was_there_is_no_change(claim):
    ds = recorded()
    ds["start"] = ds.start.where(ds.start.seed > 0)
    assert decide(claim(rivals={"one": doubled}, controls={"two": jd.scaled(predicted_z=3.0)}), ds, {}).verdict == "upheld"


# what a rival says of checks


def numbers_of(claim, number, name="relative error", **fields):
    return decide(claim(rivals={"says": {name: number}}, **fields), data(0.001), {})


@pytest.mark.parametrize(
    "number", [0.5, 1, np.float32(0.5), np.array([0.5]), math.inf, lambda ds: 0.5, lambda ds: ds.measured_z.mean() - 1.5]
)
def test_a_number_outside_of_the_bound_rejects_what_says_it(claim, number):
    decision = numbers_of(claim, number)
    assert decision.verdict == "upheld"
    (rival,) = decision.rivals
    assert rival.rejected and [c.name for c in rival.checks] == ["relative error"] and rival.checks[0].bound == (-math.inf, 0.01)
    assert isinstance(rival.checks[0].value, float) and rival.checks[0].passed is False


@pytest.mark.parametrize("number", [0.0, 0.01, -1, math.nan, lambda ds: 0.001])
def test_one_inside_of_it_or_none_at_all_does_not(claim, number):
    decision = numbers_of(claim, number)
    assert decision.verdict == "toothless" and decision.message == "not rejected by any check: says"
    assert not decision.rivals[0].rejected


@pytest.mark.parametrize("mine", ["relative_error", "", "relative error "])
def test_it_speaks_of_checks_by_their_names(claim, mine):
    decision = numbers_of(claim, 0.5, name=mine)
    assert decision.verdict == "error" and f"rival 'says' speaks of {mine!r}; the judge has 'relative error'" in decision.message


@pytest.mark.parametrize(
    "wrong", ["0.5", True, None, [0.1, 0.2], np.ones(2), 1j, lambda ds: ds.measured_z, lambda ds: True, lambda ds: "a"]
)
def test_it_says_one_number(claim, wrong):
    decision = numbers_of(claim, wrong)
    assert decision.verdict == "error"
    assert re.search("rival 'says' says .* of 'relative error', which is not allowed: it is one number", decision.message)


def test_a_function_that_raises_is_an_error_and_none_writes_into_the_data(claim):
    def writes(ds):
        ds["measured_z"] += 1
        return 0.5

    assert "read-only" in numbers_of(claim, writes).message
    assert numbers_of(claim, lambda ds: 1 / 0).message.startswith("ZeroDivisionError")


def test_what_is_said_of_one_check_is_nothing_of_another(claim):
    def both(ds):
        return [*judge(ds), jd.at_least("sign", ds.measured_z, 0.0)]

    rivals = {"no effect": {"sign": -1.0}, "both": {"sign": -1.0, "relative error": 0.0}}
    decision = decide(claim(judge=both, rivals=rivals), data(), {})
    assert decision.verdict == "upheld" and [len(r.checks) for r in decision.rivals] == [1, 2]
    assert all(r.rejected for r in decision.rivals), "one check that fails is enough"


def test_what_is_said_is_judged_in_every_cell_of_a_map(claim):
    made = claim(rivals={"as predicted": {"relative error": lambda ds: 0.02 if float(ds.lr.max()) > 0.15 else 0.0}})
    assert [c["verdict"] for c in by_cells(made, data(), ["lr"])] == ["toothless", "upheld"]


def first_rate(ds):
    return ds.assign(predicted_z=2 * ds.predicted_z.sel(lr=float(RATES[0])).drop_vars("lr") + 0 * ds.predicted_z)


RATES = data().lr.values


@pytest.mark.parametrize(
    "rival",
    [
        first_rate,
        lambda ds: (jd.need(ds, lr=(float(RATES[0]),)), doubled(ds))[1],
        lambda ds: doubled(ds.isel(lr=[int(float(ds.lr[0]) != RATES[0])])),
        {"relative error": lambda ds: float(ds.lr.values.tolist().index(RATES[0])) + 1.0},
    ],
)
def test_a_rival_that_needs_another_cell_is_not_asked_there(claim, rival):
    alone = by_cells(claim(rivals={"one": rival}), data(), ["lr"])
    assert [(c["verdict"], list(c["unasked"])) for c in alone] == [("upheld", []), ("inconclusive", ["one"])]
    assert alone[1]["failed"].startswith("no rival can be asked in this cell: one (") and "checks" in alone[1]
    both = by_cells(claim(rivals={"one": rival, "two": jd.scaled(predicted_z=3.0)}), data(), ["lr"])
    assert [(c["verdict"], list(c["unasked"])) for c in both] == [("upheld", []), ("upheld", ["one"])]


@pytest.mark.parametrize(
    ("rival", "words"),
    [
        (lambda ds: ds.assign(predicted_z=ds.strat), "AttributeError: the runs have no variable 'strat'"),
        (lambda ds: undefined(ds), "NameError: "),  # noqa: F821
        (lambda ds: ds.assign(predicted_z=ds.predicted_z + "a" * len(ds.lr) + 1), "Error: "),
        ({"relative error": lambda ds: 1 / 0}, "ZeroDivisionError: division by zero"),
    ],
)
def test_any_other_exception_of_a_rival_is_an_error_of_the_cell(claim, rival, words):
    made = claim(rivals={"typo": rival, "two": jd.scaled(predicted_z=3.0)})
    cells = by_cells(made, data(), ["lr"])
    assert [c["verdict"] for c in cells] == ["error", "error"] and words in cells[0]["failed"]
    assert decide(made, data(), {}).message == cells[0]["failed"] or "Error" in cells[0]["failed"]
    assert judge_cell(made, data(), rivals=False)["verdict"] == "upheld"


def test_a_rival_that_raises_in_all_cells_of_a_map_is_an_error():
    put = [{"verdict": "upheld", "failed": None, "unasked": {"a": "KeyError: 3", "b": "1"}}, {"verdict": "refuted", "failed": "x"}]
    other = {"verdict": "toothless", "failed": "not rejected: c", "unasked": {"a": "KeyError: 4"}}
    found = with_silent_rivals([*put, other])
    assert [c["verdict"] for c in found] == ["error", "refuted", "error"]
    assert found[2]["failed"] == "rival 'a', as in every cell: KeyError: 4"
    fine = [*put, other | {"unasked": {}}]
    assert with_silent_rivals(fine) == fine and with_silent_rivals([]) == []


# the mechanism switched off


@pytest.mark.parametrize(
    "off",
    [
        jd.off(predicted_z="initial"),
        jd.off(predicted_z=1.0),
        jd.off(predicted_z=lambda ds: ds.initial),
        jd.off(jd.swap(predicted_z="initial")),
        jd.off(jd.initial("entry", predicted_z="initial")),
        jd.off(lambda ds: ds.assign(predicted_z=0 * ds.predicted_z + 1.0)),
        jd.off({"relative error": 1.0}),
        jd.off({"relative error": lambda ds: 1.0}),
    ],
)
def test_the_mechanism_is_switched_off_in_any_form(claim, off):
    ds = data().assign(initial=(("lr", "seed"), np.ones((2, 4))))
    made = claim(evidence="network", rivals={"nothing moves": off})
    decision = decide(made, ds, {})
    assert decision.verdict == "upheld" and decision.rivals[0].rejected and decision.rivals[0].name == "nothing moves"


def test_it_is_one_rival_or_what_it_replaces():
    for wrong in (lambda: jd.off(), lambda: jd.off(doubled, predicted_z=0.0), lambda: jd.off({"a": 1.0}, predicted_z=0.0)):
        with pytest.raises(
            jd.UsageError, match=r"jd.off\(...\) takes one rival, or the predictions that it replaces, as in jd.off"
        ):
            wrong()


@pytest.mark.parametrize("evidence", ["network", "flow"])
def test_a_network_or_a_flow_has_one(claim, evidence):
    for rivals in ({}, {"nothing moves": doubled}, {"nothing moves": {"relative error": 1.0}}):
        words = f"a claim on a {evidence} needs a rival with the mechanism switched off: rivals=.*jd.off"
        with pytest.raises(jd.UsageError, match=words):
            claim(evidence=evidence, rivals=rivals, controls={"tripled": jd.scaled(predicted_z=3.0)})
    for expected in ("measured", "refuted"):
        assert claim(evidence=evidence, expected=expected, form="a", counterpart="b").rivals == {}
    assert claim(evidence="reduced").rivals == {}, "others have none to switch off"


@pytest.mark.parametrize("wrong", [3, "z", {}, None, [doubled]])
def test_what_is_switched_off_is_a_rival(claim, wrong):
    if wrong is None:
        with pytest.raises(jd.UsageError, match="takes one rival"):
            jd.off(wrong)
        return
    with pytest.raises(jd.UsageError, match="rival 'off' is .*, which is not allowed: a rival is a function Dataset -> Dataset"):
        claim(rivals={"off": jd.off(wrong)})


def test_one_function_is_one_opponent(claim):
    for rival in (doubled, jd.off(doubled)):
        with pytest.raises(jd.UsageError, match="control 'a' and rival 'b' are one function: it is one opponent, not two"):
            claim(controls={"a": doubled}, rivals={"b": rival})
        with pytest.raises(jd.UsageError, match="control 'a' and rival 'b' are one function"):
            claim(controls={"a": jd.Control(doubled)}, rivals={"b": rival})


# errors of opponents, and NaN


def test_relative_errors_of_opponents_are_of_the_measured_side():
    ds = data(0.5)  # 3 measured, 2 predicted
    assert float(jd.relative_error(ds, "z", "entry")[0, 0]) == pytest.approx(0.5)
    opponents = ds.assign_attrs(opponent=True)
    assert float(jd.relative_error(opponents, "z", "entry")[0, 0]) == pytest.approx(1 / 3)
    assert jd.relative_error(opponents, "z").values == pytest.approx(1 / 3)
    nothing = jd.swap(predicted_z=0.0)(ds)
    of_nothing = jd.relative_error(nothing.assign_attrs(opponent=True), "z", "entry")
    assert of_nothing.values == pytest.approx(1.0), "0 predicted is wrong by all of it"
    with np.errstate(all="ignore"):
        assert np.isinf(jd.relative_error(nothing, "z", "entry")).all()


def test_a_theory_in_which_nothing_happens_is_rejected_by_a_number(claim):
    decision = decide(claim(rivals={"nothing": jd.off(predicted_z=0.0)}, controls={"away": jd.scaled(measured_z=4.0)}), data(), {})
    assert decision.verdict == "upheld"
    assert decision.rivals[0].checks[0].value == pytest.approx(1.0)
    assert decision.controls[0].checks[0].value == pytest.approx(0.75), "8 measured, 2 predicted"


def test_nan_rejects_nothing(claim):
    """A judge whose number is 0 / 0 on an opponent has not told it from the truth."""

    def quotient(ds):
        return [jd.at_most("quotient", abs((ds.measured_z / ds.predicted_z - 1) * ds.predicted_z / ds.predicted_z), 0.01)]

    for kind in ("controls", "rivals"):
        decision = decide(
            claim(judge=quotient, **{kind: {"nothing": lambda ds: ds.assign(predicted_z=0 * ds.predicted_z)}}), data(), {}
        )
        (outcome,) = getattr(decision, kind)
        assert math.isnan(outcome.checks[0].value) and outcome.checks[0].passed is None and not outcome.rejected
        assert decision.verdict == "toothless" and "not rejected by any check: nothing" in decision.message


def test_nan_of_the_claims_own_runs_decides_nothing(claim):
    decision = decide(claim(judge=lambda ds: [*judge(ds), jd.at_most("no number", math.nan, 1.0)]), data(), {})
    assert decision.verdict == "inconclusive" and "undecided: no number: nan" in decision.message


def test_an_undecided_check_of_an_opponent_does_not_reject_it(claim):
    def mean(ds):
        return [*judge(ds), jd.mean_within("gap", (ds.measured_z - ds.predicted_z).mean("entry"), over=["lr", "seed"], high=0.1)]

    noise = np.linspace(-1, 1, 8).reshape(2, 4, 1)
    noisy = {"noisy": lambda ds: ds.assign(predicted_z=ds.predicted_z * 1.005, measured_z=ds.measured_z)}
    decision = decide(
        claim(judge=lambda ds: mean(ds)[1:], rivals=noisy, controls={"noise": {"rate": 1.0}}), data(), {"noise": data(noise)}
    )
    assert [c.passed for c in decision.controls[0].checks] == [None] and not decision.controls[0].rejected
    assert decision.verdict == "toothless" and decision.undecided, "more seeds may decide"
