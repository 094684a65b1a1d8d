"""Numbers, shares, times and names as the report writes them."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxdyn.report import formatting
from jaxdyn.report.formatting import duration, number, percent


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.inf, "–"),
        (0.0, "0"),
        (-0.5, "−0.5"),
        (12, "12"),
        (1234567, "1,234,567"),
        (9999.7, "10^4"),
        (47000.0, "4.7\u00a0×\u00a010^4"),
        (2e-4, "2\u00a0×\u00a010^−4"),
        (1e-8, "10^−8"),
        (-3.14e-9, "−3.14\u00a0×\u00a010^−9"),
        ("<", "&lt;"),
    ],
)
def test_numbers(value, text):
    assert re.sub("<[^>]*>", "", number(value).replace("<sup>", "^")) == text


def test_durations():
    assert [duration(s) for s in (None, 0.04, 59.97, 61, 7260)] == ["", "0.0 s", "1 min 0 s", "1 min 1 s", "2 h 1 min"]


def test_resolution_is_in_per_cent_everywhere():
    plain = [re.sub("<[^>]*>", "", percent(v)) for v in (0.5, 0.0123, 1.5e-5, 2e-7, 1.0, None)]
    assert [p.replace("\u202f", " ").replace("\u00a0", " ") for p in plain] == [
        "50 %",
        "1.2 %",
        "0.0015 %",
        "2 × 10−5 %",
        "100 %",
        "–",
    ]


def test_counts_and_values_of_fields():
    assert formatting.count(1, "claim") == "1\u00a0claim" and formatting.count(1200, "run") == "1,200\u00a0runs"
    assert [formatting.value(v) for v in ([1, 2], [], None, True, "gd")] == ["1, 2", "–", "none", "true", "gd"]


def test_tuples_are_written_as_on_the_command_line():
    assert [plain(formatting.value(v)) for v in ([[1, 2], [3, 4], [5]], (1, 2), [(0.5, 1e-9), None], [["a", True]])] == [
        "1:2, 3:4, 5",
        "1:2",
        "0.5:10^−9, none",
        "a:true",
    ]


def test_rivals_that_were_not_asked_are_counted():
    rivals = [{"rival": "late", "cells": 2, "of": 5, "reason": "KeyError: 3"}]
    line = "not asked in 2 of the 5\u00a0cells in which all checks pass: rival late"
    assert formatting.unasked(rivals, reasons=False) == [line] and formatting.unasked(rivals) == [f"{line} (KeyError: 3)"]


def plain(markup):
    return re.sub("<[^>]*>", "", str(markup).replace("<sup>", "^"))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.integers(1, 12))
def test_values_of_a_field_look_different_if_they_differ(values, power):
    values = [0.0 if v == 0 else v for v in values]  # one zero
    values += [v * (1 + 10.0**-power) for v in values if abs(v) < 1e300]
    assert len({plain(text) for text in formatting.settings(values)}) == len(set(values))


def test_values_of_a_field_are_shown_as_written():
    assert plain(formatting.value([0.0099996, 0.0100004])) == "0.0099996, 0.0100004"
    assert [plain(formatting.value(v)) for v in (10005.001, 2**60 + 1, 0.021544346900318832)] == [
        "1.0005001\u00a0×\u00a010^4",
        "1,152,921,504,606,846,977",
        "0.0215443",
    ]


def test_verdicts_that_are_not_known_have_a_badge_as_well():
    new = formatting.badge("<new>")
    assert "v-upheld" in formatting.badge("upheld") and "v-unknown" in new and "&lt;new&gt;" in new


def test_long_names_may_break():
    assert formatting.breakable("joma.exp_law") == "joma.<wbr>exp_<wbr>law"


def test_a_title_as_a_sentence():
    assert formatting.ended("It is so") == "It is so." and formatting.ended("Is it so?") == "Is it so?"
