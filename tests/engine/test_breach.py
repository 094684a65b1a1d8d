"""The vocabulary for breaches and needs, against plain numpy."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd


def make(sizes=(2, 3)):
    rng = np.random.default_rng(0)
    return xr.Dataset(
        {
            "predicted_z": (("seed", "token"), rng.normal(size=sizes)),
            "instant": (("token", "seed"), rng.normal(size=sizes[::-1])),
            "level": (("token",), rng.normal(size=sizes[1])),
        },
        coords={"seed": range(sizes[0]), "token": list("abcdefgh"[: sizes[1]])},
    )


def test_swap_takes_another_variables_values_in_the_order_of_its_own_axes():
    ds = make()
    swapped = jd.swap(predicted_z="instant")(ds)
    assert swapped.predicted_z.dims == ("seed", "token")
    np.testing.assert_array_equal(swapped.predicted_z, ds.instant.values.T)
    np.testing.assert_array_equal(swapped.instant, ds.instant)
    np.testing.assert_array_equal(jd.swap(predicted_z="level")(ds).predicted_z, np.tile(ds.level, (2, 1)))
    np.testing.assert_array_equal(jd.swap(predicted_z=0.5)(ds).predicted_z, np.full((2, 3), 0.5))
    assert "predicted_z" in ds and float(ds.predicted_z[0, 0]) != 0.5, "the data themselves are left alone"


def test_several_variables_are_swapped_at_once():
    ds = make()
    both = jd.swap(predicted_z="instant", instant="predicted_z")(ds)
    np.testing.assert_array_equal(both.predicted_z, ds.instant.values.T)
    np.testing.assert_array_equal(both.instant, ds.predicted_z.values.T)


@settings(deadline=None, max_examples=20)
@given(st.floats(-10, 10))
def test_scaled_multiplies(factor):
    ds = make()
    np.testing.assert_array_equal(jd.scaled(predicted_z=factor)(ds).predicted_z, ds.predicted_z.values * factor)
    by_level = jd.scaled(predicted_z="level")(ds).predicted_z
    assert by_level.dims == ("seed", "token")
    np.testing.assert_array_equal(by_level, ds.predicted_z.values * ds.level.values)


def test_rolled_moves_values_but_not_coordinates():
    ds = make((2, 4))
    moved = jd.rolled(predicted_z="token")(ds)
    np.testing.assert_array_equal(moved.predicted_z, np.roll(ds.predicted_z.values, 1, axis=1))
    assert moved.token.values.tolist() == list("abcd")


def test_unknown_variables_raise():
    for breach in (jd.swap(nothing="instant"), jd.swap(predicted_z="nothing"), jd.scaled(nothing=2.0), jd.rolled(nothing="token")):
        with pytest.raises(KeyError, match="nothing"):
            breach(make())


def test_need_counts_the_values_of_an_axis():
    jd.need(make(), seed=2, token=3)
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed are needed, got 2"):
        jd.need(make(), token=3, seed=8)
    with pytest.raises(jd.Inconclusive, match="at least 2 values of eta are needed, got 0"):
        jd.need(make(), eta=2)
    with pytest.raises(jd.Inconclusive, match="got 1"):
        jd.need(make().isel(seed=0), seed=2)


def test_need_looks_for_values():
    jd.need(make(), token=("a", "c"), seed=(0, 1))
    with pytest.raises(jd.Inconclusive, match="seed = 5, 7 is needed, got 0, 1"):
        jd.need(make(), seed=(0, 5, 7))
    with pytest.raises(jd.Inconclusive, match="decay = 0.0 is needed, got no such axis"):
        jd.need(make(), decay=(0.0,))
