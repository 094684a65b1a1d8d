"""Checks and the helpers that make them."""

import dataclasses
import inspect
import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.judging import judged_runs, resolution

RUNS = xr.DataArray([[0.1, 0.5, np.nan], [0.3, 0.2, 0.4]], dims=("lr", "seed"), coords={"lr": [0.01, 0.02], "seed": [4, 5, 6]})


def test_the_worst_run_is_named():
    check = jd.at_most("error", RUNS, 0.45)
    assert (check.value, check.bound, check.passed, check.worst) == (0.5, (-math.inf, 0.45), False, {"lr": 0.01, "seed": 5})
    check = jd.at_least("gain", RUNS, 0.05)
    assert check.bound == (0.05, math.inf)
    assert (check.value, check.passed, check.worst) == (0.1, True, {"lr": 0.01, "seed": 4})
    check = jd.within("ratio", RUNS, 0.15, 0.45)
    assert check.bound == (0.15, 0.45) and not check.passed and check.value in (0.1, 0.5)


def test_bounds_are_inclusive():
    assert jd.at_most("x", 1.0, 1.0).passed and jd.at_least("x", 1.0, 1.0).passed and jd.within("x", 1.0, 1.0, 1.0).passed


BACKWARDS = {
    "within": lambda low, high: jd.within("x", RUNS, low, high),
    "gate": lambda low, high: jd.gate("x", RUNS, at_least=low, at_most=high),
    "mean": lambda low, high: jd.mean_within("x", RUNS, over="seed", low=low, high=high),
    "mean of one run": lambda low, high: jd.mean_within("x", RUNS[:, :1], over="seed", low=low, high=high),
    "share": lambda low, high: jd.share_within("x", RUNS > 0.2, over="seed", low=low, high=high),
    "interval": lambda low, high: jd.interval_within("x", 1.0, lambda level: (0.9, 1.1), level=0.9, low=low, high=high),
    "check by hand": lambda low, high: jd.Check("x", 1.0, (low, high), False),
    "ends of an interval": lambda low, high: jd.interval_within("x", 1.0, lambda level: (low, high), level=0.9, low=0.0),
    "reading by hand": lambda low, high: jd.Reading("x", 1.0, (low, high)),
}


@pytest.mark.parametrize("way", BACKWARDS)
def test_two_ends_in_the_wrong_order_are_refused(way):
    """Nothing could lie within them, so that the check would fail whatever is measured."""
    with pytest.raises(
        jd.errors.UsageError, match=r"'x': (bound|interval)=\(1\.05, 0\.95\) is not allowed: the lower end comes first"
    ):
        BACKWARDS[way](1.05, 0.95)


def test_every_helper_that_takes_two_ends_is_asked_for_their_order():
    pairs = ({"low", "high"}, {"at_least", "at_most"})
    taking = {
        name for name in jd.__all__ if callable(getattr(jd, name)) and any(p <= _parameters(getattr(jd, name)) for p in pairs)
    }
    assert taking - {"field"} == {"within", "gate", "mean_within", "share_within", "interval_within"}  # jd.field: its own tests


def _parameters(function):
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()


@pytest.mark.parametrize("value", [math.nan, np.full(3, np.nan), np.array([]), RUNS * np.nan, RUNS.isel(seed=[])])
def test_nothing_but_nan_decides_nothing(value):
    checks = [jd.at_most("x", value, 1e9), jd.at_least("x", value, -1e9), jd.within("x", value, -1e9, 1e9)]
    for check in (
        *checks,
        jd.gate("x", value, at_least=0.0),
        jd.interval_within("x", value, lambda level: (value, value), low=0.0, level=0.95),
    ):
        assert check.passed is None and math.isnan(check.value) and check.worst == {}


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinity_is_a_value(value):
    assert jd.at_most("x", value, 1.0).passed == (value < 0)
    assert jd.at_least("x", value, 1.0).passed == (value > 0)
    assert not jd.within("x", value, -1.0, 1.0).passed


def test_axes_without_coordinates_and_coordinates_of_words():
    worst = jd.at_most("x", xr.DataArray([1.0, 3.0], dims="step"), 2.0).worst
    assert worst == {"step": 1}
    words = xr.DataArray([1.0, 3.0], dims="optimizer", coords={"optimizer": ["gd", "sign"]})
    assert jd.at_most("x", words, 2.0).worst == {"optimizer": "sign"}
    mixed = xr.DataArray([1.0, 3.0], dims="depth", coords={"depth": np.array([None, 3], object)})
    assert jd.at_most("x", mixed, 2.0).worst == {"depth": 3}


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6), st.floats(-1e3, 1e3), st.floats(0, 1e3))
def test_checks_say_whether_all_entries_comply(values, low, width):
    array = np.array(values)
    assert jd.at_most("x", array, low).passed == (array <= low).all()
    assert jd.at_least("x", array, low).passed == (array >= low).all()
    assert jd.within("x", array, low, low + width).passed == ((low <= array) & (array <= low + width)).all()


def test_relative_error():
    ds = xr.Dataset(
        {"predicted_z": (("seed", "entry"), [[3.0, 4.0], [1.0, 0.0]]), "measured_z": (("seed", "entry"), [[3.0, 4.5], [1.0, 2.0]])}
    )
    np.testing.assert_allclose(jd.relative_error(ds, "z", "entry"), [0.1, 2.0])
    np.testing.assert_allclose(jd.relative_error(ds, "z", ("seed", "entry")), np.sqrt((0.25 + 4) / 26))
    elementwise = jd.relative_error(ds.isel(entry=[0]), "z")
    np.testing.assert_allclose(elementwise, 0)


def test_relative_error_leaves_out_padding_and_failed_runs():
    padded = xr.Dataset(
        {
            "predicted_z": (("seed", "entry"), [[3.0, np.nan], [np.nan, np.nan]]),
            "measured_z": (("seed", "entry"), [[6.0, np.nan], [np.nan, np.nan]]),
        }
    )
    error = jd.relative_error(padded, "z", "entry")
    assert error[0] == 1.0 and np.isnan(error[1])


def test_relative_error_is_over_the_entries_that_both_sides_have():
    """A large prediction without a measurement does not hide the error of the others."""
    one_sided = xr.Dataset({"predicted_z": ("entry", [1000.0, 1.0, np.nan]), "measured_z": ("entry", [np.nan, 2.0, 1000.0])})
    assert jd.relative_error(one_sided, "z", "entry") == 1.0
    assert jd.relative_error(one_sided.assign_attrs(opponent="nothing"), "z", "entry") == 0.5


def test_relative_error_of_a_prediction_that_is_the_same_along_an_axis():
    one_for_all = xr.Dataset({"predicted_z": ("cell", [1.0, 2.0]), "measured_z": (("seed", "cell"), [[1.5, 2.0], [1.0, 4.0]])})
    np.testing.assert_allclose(jd.relative_error(one_for_all, "z", "seed"), [0.5 / 2**0.5, 2 / 8**0.5])
    with pytest.raises(jd.UsageError, match="the relative error of z is not over step: .* have the axes cell, seed"):
        jd.relative_error(one_for_all, "z", ("seed", "step"))


def test_whole_numbers_that_floats_do_not_tell_apart_are_not_compared():
    """2**53 + 1 is at most 2**53 among floats."""
    for compared in (jd.at_most, jd.at_least, lambda name, value, bound: jd.within(name, value, 0, bound)):
        with pytest.raises(jd.UsageError, match="check 'x': whole numbers are not compared with bounds beyond 2"):
            compared("x", np.array([2**53 + 1]), 2**53)
        assert compared("x", np.array([2.0**60]), 2.0**60).passed
    assert jd.at_most("x", 2**53 - 1, 2**53 - 1).passed and not jd.at_most("x", np.uint64(2**63), 2**53 - 1).passed


@pytest.mark.parametrize("over", ["entry", "step entry", "seed step"])
@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("block", [1, 100, 2**18])
def test_relative_error_has_the_bits_of_its_formula(over, gaps, block, monkeypatch):
    """The formula by xarray's reductions, which leave NaN out; sizes from 1e-200 to 1e200; in blocks of any size."""
    monkeypatch.setattr("jaxdyn.engine.judging.comparisons.BLOCK", block)
    rng = np.random.default_rng(0)
    shape = (7, 5, 9)
    sides = [np.where(rng.random(shape) < gaps, np.nan, rng.normal(size=shape) * 10.0 ** rng.integers(-200, 200, (7, 1, 1)))] * 2
    sides[1] = sides[0] + rng.normal(size=shape)
    dims = ("seed", "step", "entry")
    ds = xr.Dataset({f"{side}_z": (dims, values) for side, values in zip(("predicted", "measured"), sides, strict=True)})

    def norm(sizes, axes):
        largest = sizes.max(axes, skipna=True)
        unit = np.exp2(np.floor(np.log2(largest.where(np.isfinite(largest) & (largest > 0), 1.0))))
        return unit * ((sizes / unit) ** 2).sum(axes, skipna=True, min_count=1) ** 0.5

    p, m, axes = ds.predicted_z.variable, ds.measured_z.variable, over.split()
    expected = norm(abs(m - p), axes) / norm(abs(p), axes)
    found = jd.relative_error(ds, "z", over)
    assert found.dims == expected.dims
    np.testing.assert_array_equal(found, expected)


WHOLE = [np.int8, np.int16, np.int64, np.uint8, np.uint32, np.uint64, np.bool_]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data(), st.sampled_from(WHOLE), st.integers(-300, 300), st.integers(0, 300))
def test_whole_numbers_of_every_dtype_are_compared_as_pythons(draw, dtype, low, width):
    """Their differences would wrap: 0 - 1 is the largest unsigned number, and the negative of -128 is -128 in int8."""
    ends = (0, 1) if dtype is np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    near = st.integers(max(ends[0], -300), min(ends[1], 300))
    numbers = draw.draw(st.lists(st.sampled_from(ends) | near, min_size=1, max_size=4))
    array = xr.DataArray(np.array(numbers, dtype), dims="entry")
    assert jd.at_most("x", array, low).passed == all(n <= low for n in numbers)
    assert jd.at_least("x", array, low).passed == all(n >= low for n in numbers)
    assert jd.within("x", array, low, low + width).passed == all(low <= n <= low + width for n in numbers)
    assert jd.gate("x", array, at_least=low).passed == all(n >= low for n in numbers)


@pytest.mark.parametrize("value", [1j, np.array([1.0, 2j]), "many", np.array(["a"]), np.array([1.0, None])])
def test_only_real_numbers_are_compared(value):
    for check in (lambda: jd.at_most("x", value, 2), lambda: jd.within("x", value, 0, 2), lambda: jd.at_least("x", value, 2)):
        with pytest.raises(jd.UsageError, match="check 'x': values of dtype .* are not allowed: they are real numbers"):
            check()


@pytest.mark.parametrize("bound", [np.array([1.0, 2.0]), xr.DataArray([1.0]), "2", None, 1j, [1], 10**400])
def test_a_bound_is_one_number(bound):
    for check in (
        lambda: jd.at_most("x", 1.0, bound),
        lambda: jd.within("x", 1.0, bound, 3),
        lambda: jd.within("x", 1.0, 0, bound),
    ):
        with pytest.raises(jd.UsageError, match="check 'x': the bound .* is not allowed: it is one number"):
            check()


def test_a_number_beyond_all_floats_is_no_value():
    with pytest.raises(jd.UsageError, match="value=1000.* is not allowed: it is a number"):
        jd.Check("x", 10**400, (0, 2), True)


def pair(predicted, measured):
    return xr.Dataset({"predicted_z": ("entry", predicted), "measured_z": ("entry", measured)})


@pytest.mark.parametrize("over", ["", "entry"])
@pytest.mark.parametrize(
    ("unit", "dtype"),
    [(1.0, float), (1e-300, float), (1e300, float), (5e-324, float), (1.0, np.float32), (1e38, np.float32), (1e4, np.float16)],
)
def test_relative_error_at_the_ends_of_a_dtype(unit, dtype, over):
    predicted, measured = np.array([3, 4]) * dtype(unit), np.array([6, 4]) * dtype(unit)
    expected = [1.0, 0.0] if not over else 3 / 5
    np.testing.assert_allclose(jd.relative_error(pair(predicted, measured), "z", over), expected, rtol=1e-12)


def test_relative_error_of_whole_and_of_complex_numbers():
    np.testing.assert_allclose(jd.relative_error(pair(np.array([2**16], np.int32), np.array([2**17], np.int32)), "z"), 1)
    np.testing.assert_allclose(jd.relative_error(pair(np.array([3], np.uint8), np.array([2], np.uint8)), "z"), 1 / 3)
    for over in ("", "entry"):
        np.testing.assert_allclose(jd.relative_error(pair(np.array([2j]), np.array([2j + 2])), "z", over), 1)


def runs(*cells):
    return xr.DataArray(np.array(cells, float), dims=("cell", "seed"))


@pytest.mark.parametrize("first", [[1.0, np.inf, 1.0], [-1e308, 1e308, 0.0]])
def test_a_mean_that_is_not_finite_does_not_pass(first):
    """The other cell's mean is, and would pass alone."""
    values = runs([0.5, 0.5001, 0.4999], first)
    assert jd.mean_within("mean", values[:1], over="seed", high=1.0).passed is True
    with np.errstate(all="ignore"):  # as judges are run
        check = jd.mean_within("mean", values, over="seed", high=1.0)
        assert check.passed is not True and check.needed is None
        assert jd.mean_within("mean", values, over="seed", low=-np.inf, high=np.inf).passed is True
        assert jd.rms_within("rms", values, over="seed", high=1.0).passed is not True


def test_a_share_is_of_truth_values():
    flags = runs([1, 0, 1, np.nan], [1, 1, 1, 1])
    assert jd.share_within("share", flags, over="seed", low=0.0).passed is True
    for wrong in (0.9, 2.0, -1.0, np.inf):
        with pytest.raises(jd.UsageError, match="check 'share': a share is of truth values: 0, 1, or NaN"):
            jd.share_within("share", flags.where(flags != 0, wrong), over="seed", low=0.5)


def test_one_interval_for_many_estimates():
    check = jd.interval_within("x", runs([1.0, 2.0]), lambda level: (0.5, 2.5), low=0.0, high=3.0, level=0.95)
    assert check.passed is True and check.interval == (0.5, 2.5)


@pytest.mark.parametrize("interval", [(0.5, 2.5), None])
def test_an_interval_is_a_function_of_the_level(interval):
    with pytest.raises(jd.UsageError, match=r"check 'x': interval=.* is not allowed: it is a function of the level"):
        jd.interval_within("x", 1.0, interval, low=0.0, level=0.95)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, "high"])
def test_a_level_lies_between_0_and_1(level):
    for helper, options in ((jd.mean_within, {"low": 0.0}), (jd.share_within, {"low": 0.0}), (jd.rms_within, {"high": 1.0})):
        with pytest.raises(jd.UsageError, match="level="):
            helper("x", runs([1.0, 0.0, 1.0]), over="seed", level=level, **options)


# undefined numbers of runs that were judged


def table(values):
    """Twelve runs, [a, seed], of a trial that records ``gain`` and measures ``x``."""
    values = np.array(values, float).reshape(3, 4)
    coords = {"a": [1.0, 2.0, 3.0], "seed": range(4)}
    good = (("a", "seed"), np.ones((3, 4)))
    variables = {"gain": (("a", "seed"), values), "predicted_x": good, "measured_x": good}
    return xr.Dataset({**variables, "status": (("a", "seed"), np.zeros((3, 4), int))}, coords)


def every_check(ds):
    """All kinds of checks of ``gain``, bounded from above, from below, and from both sides."""
    per_run, mean = ds.gain, ds.gain.mean("seed", skipna=False)
    answers = [
        *(jd.at_most("each", v, 0.1) for v in (per_run, per_run.max("seed", skipna=False))),
        *(jd.within("each", v, -0.1, 0.1) for v in (per_run, mean, per_run - per_run.mean("a"))),
        *(jd.gate("each", v, at_least=-0.1, at_most=0.1) for v in (per_run, mean)),
        *(jd.mean_within("mean", per_run, over=o, low=-0.1, high=0.1) for o in ("seed", ["a", "seed"])),
        *(jd.mean_within("mean", per_run, over=o, high=0.1) for o in ("seed", ["a", "seed"])),
        *(jd.mean_within("mean", per_run, over=o, low=-0.1) for o in ("seed", ["a", "seed"])),
        *(jd.rms_within("rms", per_run**2, over=o, high=0.1) for o in ("seed", ["a", "seed"])),
        *(jd.share_within("share", (abs(per_run) < 0.1).where(per_run.notnull()), over=o, low=0.05) for o in ("seed",)),
        jd.interval_within("own", mean, lambda level: (mean - 0.01, mean + 0.01), level=0.9, low=-0.1, high=0.1),
    ]
    return [dataclasses.replace(answer, name=f"{answer.name} {i}") for i, answer in enumerate(answers)]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(-0.3, 0.3), min_size=12, max_size=12),
    st.sampled_from([np.nan, np.inf, -np.inf]),
    st.sets(st.integers(0, 11), min_size=1, max_size=4),
)
def test_a_number_that_is_none_never_lets_a_check_pass(values, bad, places):
    """Whatever a check says of finite data, it does not pass more easily where some runs that are ok give no number.

    Minus infinity is a value, which lies below every bound; a judge who takes shares asks whether each run is near.
    """
    spoilt = np.array(values)
    spoilt[list(places)] = bad
    before = judged(every_check, table(values))
    try:
        after = judged(every_check, table(spoilt))
    except jd.Inconclusive:  # fewer than two numbers are left of a mean: nothing passes
        return
    for one, other in zip(before, after, strict=True):
        minus = bad == -np.inf and other.name.startswith("each") and other.bound[0] == -np.inf
        assert one.passed is True or other.passed is not True or minus or other.name.startswith("share") and not np.isnan(bad)


def judged(judge, ds):
    return resolution.judged(judge, ds)


def test_a_cell_without_numbers_is_named_and_decides_nothing():
    """Of the second cell all runs are infinite: their mean, of -inf and inf, is no number."""
    ds = table([0.01] * 4 + [-np.inf, np.inf, -np.inf, np.inf] + [0.02] * 4)

    def judge(ds):
        return [
            jd.mean_within("gain", ds.gain, over="seed", low=-0.1, high=0.1),
            jd.within("mean", ds.gain.mean("seed"), -0.1, 0.1),
        ]

    for check in judged(judge, ds):
        assert check.passed is None and np.isnan(check.value) and check.worst == {"a": 2.0}
    (reading,) = resolution.read(lambda ds: [jd.mean_reading("gain", ds.gain, over=["a", "seed"])], ds)[1]
    assert np.isnan(reading.value) and np.isnan(reading.interval[0])


def test_runs_that_are_not_ok_and_what_a_judge_leaves_out_stay_out():
    ds = table([0.01] * 4 + [0.5] * 4 + [0.02] * 4)
    ds["status"] = ds.status.where(ds.a != 2, 1)
    left_out = judged_runs.ok_runs(ds)

    def judge(ds):
        return [
            jd.at_most("each", ds.gain, 0.1),
            jd.mean_within("mean", ds.gain, over=["a", "seed"], high=0.1),
            jd.at_most("chosen", ds.gain.where(ds.a > 2), 0.1),
        ]

    assert all(check.passed for check in judged(judge, left_out))
    ragged = table([0.01] * 12).assign(path=(("a", "seed", "entry"), np.full((3, 4, 2), 0.01)))
    ragged["path"] = ragged.path.where((ragged.a < 3) | (ragged.entry < 1))
    assert judged(lambda ds: [jd.at_most("path", ds.path, 0.1)], ragged)[0].passed is True


@pytest.mark.parametrize("over", ["", "entry"])
def test_an_infinite_prediction_is_infinitely_far_off(over):
    """The relative distance of infinite numbers is undefined: it is no padding, and no perfect agreement."""
    error = jd.relative_error(pair(np.array([np.inf, 1.0]), np.array([1.0, 1.0])), "z", over)
    assert error.max() == np.inf
    error = jd.relative_error(pair(np.array([np.inf, 1.0]), np.array([np.inf, 1.0])), "z", over)
    assert error.max() == np.inf
    assert jd.relative_error(pair(np.array([np.nan, 1.0]), np.array([np.nan, 1.0])), "z", over).max() == 0


def test_a_mean_is_never_within_a_bound_that_is_no_number():
    values = runs([1.0, 1.1, 0.9])
    for bounds in ({"low": np.nan}, {"high": np.nan}, {"low": np.nan, "high": 2.0}):
        assert jd.mean_within("mean", values, over="seed", **bounds).passed is not True
