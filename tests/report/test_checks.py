"""What the report says of checks: bounds, intervals, margins, and which check rejects which opponent."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from jaxdyn.report import checks
from jaxdyn.report.checks import GATE, OPEN, opponents, teeth
from jaxdyn.report.formatting import number
from tests.report.handmade import check


@pytest.mark.parametrize(("passed", "outcome"), [(True, "✓ passed"), (False, "✕ failed"), (None, "? undecided")])
def test_outcomes_and_how_many_runs_would_decide(passed, outcome):
    row = checks.row(check(passed=passed) | {"needed": 480})
    assert row["outcome"] == outcome and row["passed"] is passed
    assert row["needed"] == ("about 480\u00a0runs would decide" if passed is None else "")
    assert checks.row(check(passed=passed), GATE)["tone"] != "failed", "a gate that is not met refutes nothing"
    assert checks.row(check(passed=passed), OPEN)["tone"] == "plain"


@pytest.mark.parametrize(
    ("value", "bound", "passed", "words"),
    [
        (1, 2.0, True, "≤ 2"),
        (3, 2.0, False, "≤ 2"),
        (3, 2.0, True, "≥ 2"),
        (1, 2.0, False, "≥ 2"),
        (2.0, 2.0, True, "2"),
        (None, 2.0, False, "2"),
        (1, [0.5, None], True, "at least 0.5"),
        (1, [None, 2], True, "at most 2"),
        (1, [0.5, 2], True, "0.5 … 2"),
        (1, [None, None], True, str(number(None))),
    ],
)
def test_a_bound_is_written_as_the_check_asked_it(value, bound, passed, words):
    assert str(checks.row(check(value=value, bound=bound, passed=passed))["bound"]) == words


@pytest.mark.parametrize(
    ("ends", "words"), [([0.9, 1.1], "0.9 … 1.1"), ([None, 1], "−∞ … 1"), ([0.9, None], "0.9 … ∞"), (None, "")]
)
def test_an_interval_may_be_open(ends, words):
    assert str(checks.row(check() | {"interval": ends})["interval"]) == words


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_a_margin_is_the_ratio_of_value_and_bound(value, bound):
    """Read back: a percentage or a multiple, above or below."""
    text = str(checks.row(check(value=value, bound=bound))["margin"]).replace("<sup>", "e").replace("</sup>", "")
    if value == bound:
        assert text == "at the bound"
        return
    ratio = max(value / bound, bound / value)
    assert text.endswith(" below" if value < bound else " above")
    if ratio >= 1.2:
        shown_ratio = text.split(" ×")[0].replace("\u00a0×\u00a010e", "e").replace("10e", "1e").replace(",", "")
        assert math.isclose(float(shown_ratio), ratio, rel_tol=0.051), text


@pytest.mark.parametrize(("value", "at"), [(0.9, 25), (1.1, 75), (1.0, 50), (0.96, 40), (-5.0, 1), (9.0, 99)])
def test_a_gauge_has_its_bounds_at_the_quarters(value, at):
    found = checks.row(check(value=value, bound=[0.9, 1.1]) | {"interval": [0.9, 1.1]})["margin"]
    assert f"--at:{at}%;--from:25%;--to:75%" in found and isinstance(found, Markup)


def test_there_is_no_margin_of_what_has_no_ratio():
    for value, bound in ((-1.0, 2.0), (1.0, 0.0), (None, 1.0), (math.nan, 1.0), (1.0, None), (0.0, [None, 2])):
        assert checks.row(check(value=value, bound=bound))["margin"] == "", (value, bound)


def test_opponents_show_the_checks_that_reject_them():
    """All checks where none does; a bound only where it is not that of the claim's own check."""
    own = [check("slope", bound=[0.9, 1.1]), check("share", bound=0.5)]
    seen = [check("slope", 3.0, [0.9, 1.1], False), check("share", 0.7, 0.6, True)]
    outcomes = [
        {"name": "off", "rejected": True, "checks": seen},
        {"name": "on", "rejected": False, "checks": seen, "reason": "why"},
    ]
    first, second = opponents(outcomes, own)
    assert [(row["name"], row["bound"]) for row in first["checks"]] == [("slope", "")]
    assert [(row["name"], str(row["bound"])) for row in second["checks"]] == [("slope", ""), ("share", "≥ 0.6")]
    assert (first["rejected"], first["reason"], second["reason"]) == (True, "", "why")


def test_teeth_are_a_sentence_where_a_table_would_say_no_more():
    def outcome(name, rejected=True):
        return {"name": name, "rejected": rejected, "checks": [], "reason": None}

    both = {"controls": [outcome("a"), outcome("b")], "rivals": [outcome("c")]}
    assert teeth(both | {"teeth": {"x": ["a", "b", "c"], "y": ["a", "b", "c"]}}) == {
        "sentence": "Every check rejects every control and the rival."
    }
    assert teeth({"controls": [outcome("a", False)], "teeth": {"x": []}}) == {"sentence": "The check does not reject the control."}
    diverged = teeth(both | {"teeth": {"x": ["a", "b"], "y": ["a"]}})
    assert [c["bare"] for c in diverged["columns"]] == [False] * 3, "rejected because its runs diverge, as they should"
    assert [c["first"] for c in diverged["columns"]] == [False, False, True]
    assert teeth({"teeth": {"x": []}}) is None and teeth(both | {"teeth": {}}) is None
