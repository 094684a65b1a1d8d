"""Numbers of rivals: those that no run could give, and those that only happen to lie beyond what was seen."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.attacks.attainable import named_range, unattainable, why_not_attained
from tests.engine.handmade import case, law

INF = math.inf


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("share of restored tokens", (0, 1)),
        ("test accuracy at the end", (0, 1)),
        ("accuracy lost, thoughts left out", (-1, 1)),
        ("rank correlation of loss and lost weight", (-INF, INF)),  # the loss is something else
        ("attention's rank correlation with the frequency", (-1, 1)),
        ("rank correlation with one minus that with another", (-2, 2)),
        ("share of order 4 / that of the least norm", (-INF, INF)),
        ("share, in percentage points", (-INF, INF)),
        ("accuracy over that of the untrained network", (-INF, INF)),
        ("relative error", (-INF, INF)),
        ("epochs until the share is one half", (-INF, INF)),
    ],
)
def test_a_name_tells_the_range_of_a_share_alone(name, expected):
    assert named_range(name) == expected


SPREAD = [0.0, 0.1, 0.3, 0.6, 0.9, 1.0]


@pytest.mark.parametrize(
    ("number", "values", "why"),
    [
        (1.2, SPREAD, "it lies from 0 to 1, whatever the runs are"),
        (-0.1, SPREAD, "it lies from 0 to 1, whatever the runs are"),
        (0.5, SPREAD, None),
        (1.2, [v * 2 - 1 for v in SPREAD], "it lies from -1 to 1, whatever the runs are"),
        (1.2, [v / 2 for v in SPREAD], None),  # errors that are small, not shares
        (1.2, [0.0, 1.0], None),
        (2.5, [-1.0, 2.0, 3.0, 5.0, 8.0, 13.0], "it is a whole number, whatever the runs are"),
        (21.0, [1.0, 2.0, 3.0, 5.0, 8.0, 13.0], None),
        (-2.0, [0.0, 0.5, 2.0, 30.0, 7.0, 0.2], None),  # a distance with a sign may seldom be negative
        (-2.0, [0.0, 2.0, 3.0, 5.0, 8.0, 13.0], "it is a whole number, not negative, whatever the runs are"),
        (-2.0, [20.5, 21.0, 22.0, 23.0, 24.0, 25.0], None),
        (INF, SPREAD, "it is not finite"),
        (INF, [*SPREAD, INF], None),
    ],
)
def test_values_tell_a_range_where_they_fill_it(number, values, why):
    assert why_not_attained("quantity", number, values) == why


def test_a_share_that_was_above_one_is_none():
    assert why_not_attained("share of entries", 1.2, [0.5]) == "it lies from 0 to 1"
    assert why_not_attained("share of entries", 1.2, [0.5, 1.4]) is None


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20), st.integers(0, 19))
def test_what_was_seen_is_attained(values, place):
    assert why_not_attained("quantity", values[place % len(values)], values) is None


def found(judge, number, **fields):
    name = "quantity"
    made = law(
        judge=lambda ds: [jd.at_least(name, judge(ds), -10.0)], controls={"zero": zero}, rivals={"other": {name: number}}, **fields
    )
    return [f.text.partition(": ")[2] for f in unattainable(case(made))]


def zero(ds):
    return ds.assign(measured_z=0 * ds.measured_z)


def test_the_judge_is_asked_on_changed_runs():
    correlation = lambda ds: np.corrcoef(ds.measured_z.values.ravel(), np.arange(ds.measured_z.size))[0, 1]  # noqa: E731
    counted = lambda ds: int((ds.measured_z > 1).sum())  # noqa: E731
    error = lambda ds: float(abs(ds.measured_z - ds.predicted_z).mean() / 1e4)  # noqa: E731
    assert found(counted, 2.5) == ["it is a whole number, not negative, whatever the runs are"]
    assert found(counted, 3.0) == []
    assert found(error, 1.5) == [], "that it was small in all runs says nothing"
    assert found(lambda ds: float(np.nan_to_num(correlation(ds))), 0.3) == []
