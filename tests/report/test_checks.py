"""What the report says of checks: bounds, intervals, margins, and which check rejects which opponent."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from jaxdyn.report import checks
from jaxdyn.report.checks import GATE, fits
from jaxdyn.report.formatting import number
from tests.report.handmade import check, reading


@pytest.mark.parametrize(("passed", "outcome"), [(True, "✓ passed"), (False, "✕ failed"), (None, "? undecided")])
def test_outcomes_and_how_many_runs_would_decide(passed, outcome):
    row = checks.row(check(passed=passed) | {"needed": 480})
    assert row["outcome"] == outcome and row["passed"] is passed
    assert row["needed"] == ("about 480\u00a0runs would decide" if passed is None else "")
    assert checks.row(check(passed=passed), GATE)["tone"] != "failed", "a gate that is not met refutes nothing"


@pytest.mark.parametrize(
    ("value", "bound", "passed", "words"),
    [
        (3, [None, 2.0], False, "at most 2"),
        (1, [0.5, None], True, "at least 0.5"),
        (1, [None, 2], True, "at most 2"),
        (1, [0.5, 2], True, "0.5 … 2"),
        (1, [None, None], True, str(number(None))),
        (626757777, [626757777, None], True, "at least 626,757,777"),  # a whole number is shown in full, like the value
    ],
)
def test_a_bound_is_written_as_the_check_asked_it(value, bound, passed, words):
    assert str(checks.row(check(value=value, bound=bound, passed=passed))["bound"]) == words


@pytest.mark.parametrize(
    ("ends", "words"), [([0.9, 1.1], "0.9 … 1.1"), ([None, 1], "−∞ … 1"), ([0.9, None], "0.9 … ∞"), (None, "")]
)
def test_an_interval_may_be_open(ends, words):
    assert str(checks.row(check() | {"interval": ends})["interval"]) == words


def read_back(text):
    """The number that the report writes."""
    plain = str(text).replace("<sup>", "e").replace("</sup>", "").replace("−", "-")
    return float(plain.replace("\u00a0×\u00a010e", "e").replace("10e", "1e").replace(",", ""))


@given(st.floats(1e-9, 1e9), st.floats(-1e-3, 1e-3), st.floats(-1e-3, 1e-3))
def test_a_value_and_its_interval_are_seen_on_their_side_of_the_bound(bound, apart, wide):
    ends = sorted((bound * (1 + apart), bound * (1 + wide)))
    row = checks.row(check(value=ends[0], bound=[None, bound]) | {"interval": ends})
    limit = read_back(str(row["bound"]).removeprefix("at most "))
    for true, text in zip((ends[0], *ends), (row["value"], *str(row["interval"]).split(" … ")), strict=True):
        assert (read_back(text) <= limit) == (true <= bound), (text, row["bound"])


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_a_margin_is_the_ratio_of_value_and_bound(value, bound):
    """Read back: a percentage or a multiple, above or below."""
    text = str(checks.row(check(value=value, bound=[None, bound]))["margin"]).replace("<sup>", "e").replace("</sup>", "")
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


def test_a_ratio_beyond_all_numbers_is_not_told():
    assert str(checks.row(check(value=4.3e8, bound=[None, 1e-300]))["margin"]) == "above"


def test_there_is_no_margin_of_what_has_no_ratio():
    for value, high in ((-1.0, 2.0), (1.0, 0.0), (None, 1.0), (math.nan, 1.0), (1.0, None), (0.0, 2)):
        bound = [None, high]
        assert checks.row(check(value=value, bound=bound))["margin"] == "", (value, bound)


def outcome(name, rejected=True, checks=(), **more):
    return {"name": name, "rejected": rejected, "checks": list(checks), "reason": None} | more


def test_every_opponent_stands_beside_the_theory():
    """Each check in a row: its value on the claim's runs, and on every control and rival, marked where that rejects it."""
    own = [check("slope", 1.0, [0.9, 1.1]), check("share", 0.7, [0.6, None])]
    off = outcome("off", True, [check("slope", 3.0, [0.9, 1.1], False), check("share", 0.7, [0.6, None])])
    says = outcome("says", False, [check("slope", 1.0, [0.9, 1.1])], reason="why")
    table = fits({"checks": own, "controls": [off], "rivals": [says]})
    assert [(c["name"], c["kind"], c["rejected"], c["first"]) for c in table["columns"]] == [
        ("off", "control", True, True),
        ("says", "rival", False, True),
    ]
    assert [(row["name"], row["value"], row["bare"]) for row in table["rows"]] == [("slope", "1", False), ("share", "0.7", True)]
    assert [[(c["value"], c["mark"], c["there"]) for c in row["cells"]] for row in table["rows"]] == [
        [("3", True, True), ("1", False, True)],
        [("0.7", False, True), (None, False, False)],
    ]
    assert table["columns"][1]["reason"] == "why" and not table["alone"] and not table["measured"]
    assert fits({"checks": own}) is None and fits({"checks": own, "controls": [off]})["alone"]


def test_readings_are_marked_where_they_tell_an_opponent_apart():
    own = [reading("slope"), reading("gain", 0.3, None)]
    rival = outcome("no gain", True, readings=[reading("gain", 0.0, None)], apart=["gain"])
    table = fits({"readings": own, "rivals": [rival]})
    assert table["measured"] and [c["mark"] for row in table["rows"] for c in row["cells"]] == [False, True]
    assert not any(row["bare"] for row in table["rows"]), "a reading need tell nothing apart"


def test_a_reading_stands_beside_its_record():
    row = checks.reading(reading(), {"slope": {"value": 1.0, "interval": [0.9, 1.1]}})
    shown = [str(row[name]) for name in ("value", "interval", "recorded", "recorded_interval")]
    assert shown == ["1.02", "0.97 … 1.08", "1", "0.9 … 1.1"]
    assert checks.reading(reading("gain", 0.3, None), {})["recorded"] is None
    close = checks.reading(reading("gain", 0.123456, None), {"gain": {"value": 0.123459}})
    assert (close["value"], close["recorded"]) == ("0.123456", "0.123459"), "numbers that differ look different"


def test_an_opponent_that_is_rejected_has_another_number_than_the_theory():
    own, near = check("slope", 0.12342, [0, 0.123425]), check("slope", 0.12343, [0, 0.123425], False)
    (row,) = fits({"checks": [own], "controls": [outcome("off", True, [near])]})["rows"]
    assert (row["value"], row["cells"][0]["value"]) == ("0.12342", "0.12343")


@pytest.mark.parametrize(
    ("value", "text"), [(0.85, "15 % below"), (0.84, "16 % below"), (1.17, "17 % above"), (0.99, "1 % below"), (0.5, "2 × below")]
)
def test_percentages_are_of_the_bound(value, text):
    margin = str(checks.row(check(value=value, bound=[None, 1.0]))["margin"])
    assert margin.replace("\u00a0", " ").replace("\u202f", " ") == text
