"""Checks and readings as they are made: numbers, bounds, marks, and how they are written."""

import math
import re

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.judging.check import Check, Reading, all_passed, bound_text, holds


def test_numbers_and_marks_become_pythons_own():
    check = Check(
        "x", np.float32(0.5), (np.int64(0), np.float64(1)), np.True_, {"seed": np.int64(3)}, [xr.DataArray(0.25), np.array([0.75])]
    )
    assert (check.value, check.bound, check.passed, check.worst, check.interval) == (0.5, (0, 1), True, {"seed": 3}, (0.25, 0.75))
    assert [type(x) for x in (check.value, *check.bound, check.passed, check.worst["seed"])] == [float, float, float, bool, int]
    reading = Reading("x", np.array(2), (np.float32(1), 3), {"lr": np.float64(0.5)})
    assert (reading.value, reading.interval, reading.worst) == (2.0, (1.0, 3), {"lr": 0.5})
    assert type(reading.value) is float and type(reading.worst["lr"]) is float


@pytest.mark.parametrize(
    "bound", [2.0, None, (1.0,), (0.0, 1.0, 2.0), "ab", (None, 1.0), ("0", 1), (0, 1j), {"low": 0}, np.zeros(2)]
)
def test_a_bound_is_a_pair_of_numbers(bound):
    with pytest.raises(jd.UsageError, match="check 'x': bound=.* is not allowed: it is"):
        Check("x", 1.0, bound, True)


@pytest.mark.parametrize("interval", [1.0, (1.0,), (None, 1.0), "ab", (0, "1")])
@pytest.mark.parametrize("kind", [Check, Reading])
def test_an_interval_is_a_pair_of_numbers(kind, interval):
    make = {Check: lambda: Check("x", 1.0, (0, 1), True, interval=interval), Reading: lambda: Reading("x", 1.0, interval)}
    with pytest.raises(jd.UsageError, match=f"{kind.__name__.lower()} 'x': interval=.* is not allowed: it is"):
        make[kind]()


@pytest.mark.parametrize("value", ["1", None, True, 1j, np.ones(2), xr.DataArray([1.0, 2.0]), 10**400, object()])
def test_a_value_is_a_number(value):
    for make, kind in ((lambda: Check("x", value, (0, 1), True), "check"), (lambda: Reading("x", value), "reading")):
        with pytest.raises(jd.UsageError, match=f"{kind} 'x': value=.* is not allowed: it is a number"):
            make()


@pytest.mark.parametrize("passed", ["no", 1, 0.0, np.array([True, False]), float("nan")])
def test_a_mark_is_true_false_or_none(passed):
    with pytest.raises(jd.UsageError, match="check 'x': passed=.* is not allowed: it is True, False or None"):
        Check("x", 1.0, (0, 1), passed)


@pytest.mark.parametrize("name", [1, None, b"x", ("x",)])
def test_a_name_is_a_word(name):
    with pytest.raises(jd.UsageError, match="a check is called .*: its name is a word"):
        Check(name, 1.0, (0, 1), True)
    with pytest.raises(jd.UsageError, match="a reading is called .*: its name is a word"):
        Reading(name, 1.0)


def test_coordinates_are_a_dict():
    for make in (lambda: Check("x", 1.0, (0, 1), True, [3]), lambda: Reading("x", 1.0, worst=[3])):
        with pytest.raises(jd.UsageError, match=r"'x': worst=\[3\] is not allowed: it is a dict of coordinates"):
            make()


@pytest.mark.parametrize("passed", [True, False, None, np.True_])
def test_nan_neither_passes_nor_fails(passed):
    check = Check("x", math.nan, (-math.inf, 1.0), passed)
    assert check.passed is None and str(check) == "x: nan, bound at most 1"


def test_how_they_are_written():
    assert str(Check("x", 0.123456, (0.1, 0.2), True)) == "x: 0.1235, bound 0.1 to 0.2"
    assert str(Check("x", 2, (-math.inf, 1.0), False, interval=(1.5, 2.5))) == "x: 2 [1.5, 2.5], bound at most 1"
    undecided = Check("x", 2, (1.9, math.inf), None, interval=(1.5, 2.5), needed=40)
    assert str(undecided) == "x: 2 [1.5, 2.5], bound at least 1.9; about 40 runs would decide"
    assert str(Check("x", 2, (1.9, math.inf), True, needed=40)) == "x: 2, bound at least 1.9"
    assert str(Reading("x", 2)) == "x: 2" and str(Reading("x", 2, (1.5, 2.5))) == "x: 2 [1.5, 2.5]"


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ((-math.inf, 1), "at most 1"),
        ((0.5, math.inf), "at least 0.5"),
        ((0, 1e-9), "0 to 1e-09"),
        ((None, 1.0), "at most 1"),
        ([0.5, None], "at least 0.5"),
        ((1 / 3, 1e7), "0.333333 to 1e+07"),
    ],
)
def test_a_bound_in_words(bound, words):
    """JSON has null for what is infinite."""
    assert bound_text(bound) == words


def test_a_number_within_a_bound():
    assert [holds((0.0, 1.0), x) for x in (-1e-9, 0.0, 0.5, 1.0, 1.1, math.inf, math.nan)] == [
        False,
        True,
        True,
        True,
        False,
        False,
        None,
    ]
    assert holds((-math.inf, math.inf), -math.inf) is True


def test_a_reading_of_no_interval_ends_at_itself():
    assert Reading("x", 2.0).ends == (2.0, 2.0) and Reading("x", 2.0, (1.0, 4.0)).ends == (1.0, 4.0)


@pytest.mark.parametrize(
    ("marks", "whole"),
    [("++", True), ("+-", False), ("+?", None), ("-?", False), ("", True), ("g", True), ("+g", True), ("?g", None)],
)
def test_all_pass_or_one_fails_or_nothing_is_decided(marks, whole):
    """Gates (g, which fail here) are not asked."""
    passed = {"+": True, "-": False, "?": None, "g": False}
    assert all_passed(Check("x", 1.0, (0, 1), passed[m], gate=m == "g") for m in marks) is whole


def test_they_are_public():
    assert jd.Check is Check and jd.Reading is Reading


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(-1e300, 1e300), st.sampled_from([0.0, 1.0, 1 + 1e-15, -1e-9, 4e7]), st.booleans())
def test_a_message_shows_on_which_side_of_its_bound_a_value_lies(bound, factor, near):
    value = bound * factor if near else float(np.nextafter(bound, np.inf))
    if not math.isfinite(value):
        return
    text = str(jd.at_most("e", value, bound))
    shown, limit = (float(words) for words in re.fullmatch(r"e: (\S+), bound at most (\S+)", text).groups())
    assert (shown <= limit) == (value <= bound), text


@pytest.mark.parametrize(
    ("value", "bound", "text"),
    [
        (0.0040000001, 0.004, "0.0040000001, bound at most 0.004"),
        (99999.96, 99999.9, "1e+05, bound at most 99999.9"),
        (1 + 2**-40, 1, "1.000000000001, bound at most 1"),
    ],
)
def test_as_many_digits_as_are_needed(value, bound, text):
    assert str(jd.at_most("e", value, bound)) == f"e: {text}"
    assert str(jd.at_most("e", 0.00123456, 0.004)) == "e: 0.001235, bound at most 0.004"


@given(st.floats(1e-9, 1e9), st.floats(-1e-6, 1e-6), st.floats(-1e-6, 1e-6))
def test_the_ends_of_an_interval_are_seen_on_their_side_of_the_bound(bound, apart, wide):
    ends = tuple(sorted((bound * (1 + apart), bound * (1 + wide))))
    text = str(jd.Check("mean", ends[0], (-math.inf, bound), True, interval=ends))
    *shown, limit = (float(part) for part in re.fullmatch(r"mean: (\S+) \[(\S+), (\S+)\], bound at most (\S+)", text).groups())
    assert [s <= limit for s in shown] == [v <= bound for v in (ends[0], *ends)], text


@pytest.mark.parametrize("bound", [(math.nan, math.nan), (-math.inf, math.nan), (math.nan, 2.0)])
def test_a_bound_that_is_no_number_decides_nothing(bound):
    assert Check("x", 1.0, bound, True).passed is None and holds(bound, 1.0) is None
    one = xr.DataArray([1.0, 2.0], dims="lr")
    for check in (jd.at_most("x", one, math.nan), jd.at_least("x", one, math.nan), jd.within("x", one, math.nan, 3.0)):
        assert check.passed is None and "nan" in str(check)


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        ((-math.inf, math.inf), "none"),
        ((-math.inf, -math.inf), "at most -inf"),
        ((math.inf, math.inf), "at least inf"),
        ((None, None), "none"),
        ((0, math.inf), "at least 0"),
    ],
)
def test_infinite_bounds_in_words(bound, text):
    assert bound_text(bound) == text
