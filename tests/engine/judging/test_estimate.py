"""Estimates: their intervals against scipy, and how an interval decides; and looks: what each spends, as oracles say."""

import dataclasses
import functools
import math

import numpy as np
import pytest
import scipy.stats
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn import stats
from jaxdyn.engine.judging.check import Check
from jaxdyn.engine.judging.decision import Terms
from jaxdyn.engine.judging.estimate import Estimate, Look, look, spent, student, wilson
from jaxdyn.engine.judging.verdict import decide
from tests.engine.handmade import data


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


# Looks ----------------------------------------------------------------------------------------------------------------

VALUES = xr.DataArray(np.random.default_rng(0).normal(0.4, 1.0, (3, 16)), dims=("entry", "seed"))


@pytest.mark.parametrize(
    ("seeds", "first", "number"),
    [(8, 8, 1), (4, 8, 1), (1, 8, 1), (9, 8, 2), (16, 8, 2), (17, 8, 3), (64, 8, 4), (50, 8, 4), (3, 1, 3)],
)
def test_looks_are_doublings(seeds, first, number):
    assert look(seeds, first) == number


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 100), st.integers(0, 12))
def test_every_doubling_is_one_look_more(first, doublings):
    assert look(first * 2**doublings, first) == 1 + doublings
    assert look(first * 2**doublings + 1, first) == 2 + doublings


def test_all_looks_together_spend_no_more_than_the_whole():
    shares = [spent(k) for k in range(1, 50)]
    assert shares[:3] == [0.5, 0.25, 0.125] and sum(shares) <= 1.0


LEVEL = 0.997


def student_by_scipy(values, level):
    """By scipy, for three means at once."""
    n = values.sizes["seed"]
    t = scipy.stats.t.isf((1 - level) / 2 / values.sizes["entry"], n - 1)
    mean, half = values.mean("seed"), t * values.std("seed", ddof=1) / n**0.5
    return mean - half, mean + half


def wilson_by_roots(flags, level):
    """The roots of (p - x)^2 = z^2 x (1 - x) / n in x, for three shares at once."""
    n, p = flags.sizes["seed"], flags.mean("seed").values
    z = scipy.stats.norm.isf((1 - level) / 2 / flags.sizes["entry"])
    roots = [np.sort(np.roots([1 + z**2 / n, -(2 * x + z**2 / n), x**2]).real) for x in p]
    return np.transpose(roots)


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_the_engine_decides_at_the_level_of_the_look(number):
    """The k-th look has 2^-k of the error, which Bonferroni shares out among the entries."""
    level = 1 - (1 - LEVEL) * 2.0**-number

    def judge(ds):
        return [
            jd.mean_within("mean", ds.x, over="seed", low=-9.0),
            jd.share_within("share", ds.x > 0, over="seed", low=-9.0),
            jd.rms_within("rms", ds.x**2, over="seed", high=9.0),
        ]

    checks = Look(judge, spent(number))(xr.Dataset({"x": VALUES}))
    squares = student_by_scipy(VALUES**2, level)
    oracles = [student_by_scipy(VALUES, level), wilson_by_roots(VALUES > 0, level), [np.sign(s) * np.sqrt(abs(s)) for s in squares]]
    for check, (low, high) in zip(checks, oracles, strict=True):
        assert type(check) is Check and check.level == pytest.approx(level, abs=1e-15)
        at = check.worst["entry"]
        assert check.interval == pytest.approx((float(low[at]), float(high[at])), rel=1e-9)


def test_an_interval_of_the_judges_own_is_asked_at_the_level_of_the_look():
    levels = []

    def ends(level):
        levels.append(level)
        return 1.0 - (1 - level), 1.0 + (1 - level)

    (check,) = Look(lambda ds: [jd.interval_within("x", 1.0, ends, low=0.0, level=0.9)], 0.25)(None)
    assert levels == pytest.approx([0.9, 0.975]) and check.interval == pytest.approx((0.975, 1.025))


def test_a_wider_interval_may_decide_otherwise_and_names_and_gates_stay():
    """A mean .3 errors inside the bound at the level asked for is undecided at a later look."""
    one = VALUES.isel(entry=0)
    low = float(stats.mean_interval(one, "seed", LEVEL)[1]) - 1e-3
    judge = lambda ds: [dataclasses.replace(jd.mean_within("m", one, over="seed", low=low), name="named", gate=True)]  # noqa: E731
    assert judge(None)[0].passed is True
    (check,) = Look(judge, 0.5)(None)
    assert (check.name, check.gate, check.passed) == ("named", True, None) and check.needed > 16


def test_a_judge_called_by_itself_has_the_level_that_it_asks_for():
    check = jd.mean_within("m", VALUES, over="seed", low=-9.0)
    low, high = student_by_scipy(VALUES, LEVEL)
    at = check.worst["entry"]
    assert check.level == LEVEL and check.interval == pytest.approx((float(low[at]), float(high[at])))
    assert check == jd.mean_within("m", VALUES, over="seed", low=-9.0), "the same data, the same answer"


def test_what_is_no_list_of_checks_is_handed_on():
    check = jd.at_most("x", 1.0, 2.0)
    assert Look(lambda ds: None, 0.5)(None) is None and Look(lambda ds: [check], 0.5)(None) == [check]


@pytest.mark.parametrize("number", [1, 3])
def test_a_decision_has_the_level_of_its_look(claim_of, number):
    def judge(ds):
        gap = (ds.measured_z - ds.predicted_z).mean("entry")
        return [jd.mean_within("gap", gap, over=["lr", "seed"], low=-1.0, high=1.0)]

    decision = decide(claim_of(judge), data(), {}, Terms(look=number))
    for check in (*decision.checks, *decision.controls[0].checks):
        assert type(check) is Check and check.level == pytest.approx(1 - 0.003 * 2.0**-number)


def test_the_dataset_says_whose_runs_it_holds(claim_of):
    """Those of a control are marked; distorted data are nobody's, and the caller's Dataset is left as it was."""
    asked = []

    def judge(ds):
        asked.append((float(ds.predicted_z.max()), ds.attrs.get("opponent", False)))
        return [jd.at_most("error", jd.relative_error(ds, "z", "entry"), 0.01)]

    runs = data()
    assert decide(claim_of(judge), runs, {}).verdict == "upheld" and not runs.attrs
    assert asked[0] == (2.0, False) and (4.0, True) in asked
    assert not any(opponent for value, opponent in asked if value not in (2.0, 4.0))


@pytest.mark.parametrize("helper", [stats.bonferroni_z, functools.partial(stats.bonferroni_t, runs=8)])
def test_quantiles_are_of_the_level_that_they_are_given(helper):
    law = scipy.stats.norm if helper is stats.bonferroni_z else scipy.stats.t(7)
    assert helper(3, level=LEVEL) == pytest.approx(float(law.isf(0.003 / 6)), rel=1e-9) and not math.isnan(helper(3, level=LEVEL))


@pytest.fixture
def claim_of():
    """A claim on runs made by hand, of its judge."""

    @jd.setting
    class Nothing:
        """No field is needed."""

        lr: jd.Swept = 0.1

    def make(judge):
        doubled = {"doubled": lambda ds: ds.assign(predicted_z=2 * ds.predicted_z)}
        parts = {"trial": print, "quick": jd.grid(Nothing), "evidence": "algebra", "bounds": "derived", "controls": doubled}
        return jd.Claim(id="toy.made", title="Made by hand", statement="", source="", judge=judge, **parts)

    return make


def test_an_interval_that_leaves_its_estimate_out_is_widened_up_to_it():
    """Else an estimate beyond the bound would pass by an interval that is not its own."""
    check = jd.interval_within("x", 5.0, lambda level: (0.0, 1.0), level=0.997, high=2.0)
    assert check.passed is None and check.interval == (0.0, 5.0)
    several = jd.interval_within("x", np.array([0.5, 3.0]), lambda level: (np.zeros(2), np.ones(2)), level=0.997, high=4.0)
    assert several.passed and several.interval == (0.0, 3.0)
    with pytest.raises(jd.UsageError, match="interval"):
        jd.interval_within("x", 5.0, lambda level: (1.0, 0.0), level=0.997, high=2.0)
