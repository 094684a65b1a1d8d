"""Checks and the helpers that make them."""

import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd

RUNS = xr.DataArray([[0.1, 0.5, np.nan], [0.3, 0.2, 0.4]], dims=("lr", "seed"), coords={"lr": [0.01, 0.02], "seed": [4, 5, 6]})


def test_the_worst_run_is_named():
    check = jd.at_most("error", RUNS, 0.45)
    assert (check.value, check.bound, check.passed, check.worst) == (0.5, 0.45, False, {"lr": 0.01, "seed": 5})
    check = jd.at_least("gain", RUNS, 0.05)
    assert (check.value, check.passed, check.worst) == (0.1, True, {"lr": 0.01, "seed": 4})
    check = jd.within("ratio", RUNS, 0.15, 0.45)
    assert check.bound == (0.15, 0.45) and not check.passed and check.value in (0.1, 0.5)


def test_bounds_are_inclusive():
    assert jd.at_most("x", 1.0, 1.0).passed and jd.at_least("x", 1.0, 1.0).passed and jd.within("x", 1.0, 1.0, 1.0).passed


@pytest.mark.parametrize("value", [math.nan, np.full(3, np.nan), np.array([]), RUNS * np.nan, RUNS.isel(seed=[])])
def test_nothing_but_nan_fails(value):
    for check in (jd.at_most("x", value, 1e9), jd.at_least("x", value, -1e9), jd.within("x", value, -1e9, 1e9)):
        assert not check.passed and math.isnan(check.value) and check.worst == {}


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
