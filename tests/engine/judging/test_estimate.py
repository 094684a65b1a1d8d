"""Estimates: their intervals against scipy, and how an interval decides."""

import functools
import math

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from jaxdyn.engine.judging.check import Check
from jaxdyn.engine.judging.estimate import Estimate, student, wilson


def fixed(low, high):
    return lambda level: (low, high)


@pytest.mark.parametrize(
    ("interval", "passed"),
    [((0.5, 1.5), True), ((0.0, 2.0), True), ((-0.1, 1.5), None), ((0.5, 2.1), None), ((2.1, 2.5), False), ((-2.0, -0.1), False)],
)
def test_inside_passes_outside_fails_and_between_is_undecided(interval, passed):
    check = Estimate(sum(interval) / 2, fixed(*interval), (0.0, 2.0), runs=8).check("x", 0.9)
    assert (check.passed, check.interval, check.level) == (passed, interval, 0.9)
    assert (check.needed is not None) == (passed is None)


def test_one_estimate_that_lies_outside_is_enough_to_fail_and_is_named():
    value = xr.DataArray([1.0, 5.0, 3.0], dims="kind", coords={"kind": ["a", "b", "c"]})
    check = Estimate(value, lambda level: (value - 1, value + 1), (0.0, 3.5)).check("x", 0.9)
    assert (check.passed, check.value, check.worst, check.interval) == (False, 5.0, {"kind": "b"}, (4.0, 6.0))


def test_an_estimate_without_a_finite_interval_may_be_anything():
    assert Estimate(1.0, fixed(math.nan, math.nan), (0.0, 2.0)).check("x", 0.9).passed is None
    assert Estimate(math.inf, fixed(math.nan, math.nan), (0.0, 2.0)).check("x", 0.9).passed is False
    assert Estimate(math.nan, fixed(math.nan, math.nan), (0.0, 2.0)).check("x", 0.9).passed is None


def test_squares_are_shown_as_signed_roots():
    check = Estimate(0.04, fixed(-0.01, 0.09), (-math.inf, 0.31), root=True).check("x", 0.9)
    assert check.passed is True and check.bound == (-math.inf, 0.31)
    assert (check.value, *check.interval) == pytest.approx((0.2, -0.1, 0.3))
    assert Estimate(0.04, fixed(-0.01, 0.09), (-math.inf, 0.29), root=True).check("x", 0.9).passed is None


@pytest.mark.parametrize("level", [0.9, 0.997])
def test_intervals_of_both_kinds_against_scipy(level):
    """One mean, and one share; several hold together, each with its part of the error."""
    values = np.random.default_rng(0).normal(size=12)
    mean, deviation, runs = xr.Variable((), values.mean()), xr.Variable((), values.std(ddof=1)), xr.Variable((), 12)
    expected = scipy.stats.t.interval(level, 11, values.mean(), scipy.stats.sem(values))
    assert tuple(map(float, student(mean, deviation, runs, level))) == pytest.approx(expected)
    one = scipy.stats.binomtest(9, 12).proportion_ci(level, "wilson")
    assert tuple(map(float, wilson(np.array(9), np.array(12), level))) == pytest.approx((one.low, one.high))
    several = scipy.stats.binomtest(9, 12).proportion_ci(1 - (1 - level) / 2, "wilson")
    low, high = wilson(np.array([9, 3]), np.array([12, 12]), level)
    assert (low[0], high[0]) == pytest.approx((several.low, several.high))


def test_a_share_of_the_error_and_a_plain_check():
    asked = []

    def ends(level):
        asked.append(level)
        return 0.5, 1.5

    check = Estimate(1.0, ends, (0.0, 2.0)).check("x", 0.9)
    assert type(check.at(1.0)) is Check and asked == [0.9], "nothing is decided again"
    assert check.at(0.5).level == pytest.approx(0.95) and asked == pytest.approx([0.9, 0.95])
    assert check == Estimate(1.0, functools.partial(ends), (0.0, 2.0)).check("x", 0.9), "what it rests on is not compared"


@pytest.mark.parametrize("root", [1e-200, 1e-170, 1e160, 1e200, 1e308])
def test_bounds_of_roots_without_a_square(root):
    """The square of 1e200 is no float, and that of 1e-200 zero: both stay bounds."""
    inside = Estimate(4.0, lambda level: (1.0, 9.0), (-math.inf, root), root=True).check("x", 0.9)
    assert inside.passed == (root > 1) and inside.bound == (-math.inf, root)
    above = Estimate(4.0, lambda level: (1.0, 9.0), (root, math.inf), root=True).check("x", 0.9)
    assert above.passed == (root < 1)


def test_an_estimate_next_to_its_bound_has_no_number_of_runs_that_would_decide():
    check = Estimate(1e-200, lambda level: (-1.0, 1.0), (0.0, 2.0), runs=8).check("x", 0.9)
    assert check.passed is None and check.needed is None
