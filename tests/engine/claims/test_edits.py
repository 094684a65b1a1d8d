"""Edits of a Dataset and what a judge needs, against plain numpy."""

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


AXES = {"seed": 2, "alpha": 3, "record": 4, "token": 5}


@st.composite
def datasets(draw):
    """A variable with some axes in any order, and another with some of these in any order; axes with or without coordinates."""
    axes = draw(st.permutations(sorted(AXES)))[: draw(st.integers(1, len(AXES)))]
    fewer = draw(st.permutations(axes))[: draw(st.integers(0, len(axes)))]
    labelled = draw(st.sets(st.sampled_from(sorted(AXES))))
    rng = np.random.default_rng(draw(st.integers(0, 9)))

    def values(dims):
        return (dims, rng.normal(size=[AXES[d] for d in dims]))

    coords = {axis: np.arange(AXES[axis]) / 2 for axis in labelled}
    return xr.Dataset({"predicted_z": values(axes), "other": values(fewer)}, coords=coords)


def spread(values, axes):
    """An array over more axes, in plain numpy."""
    there = np.transpose(values.values, [values.dims.index(axis) for axis in axes if axis in values.dims])
    shape = [AXES[axis] if axis in values.dims else 1 for axis in axes]
    return np.broadcast_to(there.reshape(shape), [AXES[axis] for axis in axes])


@settings(deadline=None, max_examples=60)
@given(datasets(), st.sampled_from(["float32", "float64", "int64", "bool"]))
def test_swap_by_a_function_brings_values_into_the_variables_axes(ds, dtype):
    ds = ds.assign(other=ds.other.astype(dtype))
    swapped = jd.swap(predicted_z=lambda ds: ds.other)(ds)
    assert swapped.predicted_z.dims == ds.predicted_z.dims and swapped.predicted_z.dtype == dtype
    np.testing.assert_array_equal(swapped.predicted_z, spread(ds.other, ds.predicted_z.dims))
    assert swapped.equals(jd.swap(predicted_z="other")(ds)) and swapped.drop_vars("predicted_z").equals(ds.drop_vars("predicted_z"))


@settings(deadline=None, max_examples=60)
@given(datasets(), st.data())
def test_initial_keeps_the_first_value_along_an_axis(ds, data):
    axis = data.draw(st.sampled_from(ds.predicted_z.dims))
    still = jd.initial(axis, "predicted_z")(ds)
    assert still.predicted_z.dims == ds.predicted_z.dims and set(still.coords) == set(ds.coords)
    place = ds.predicted_z.dims.index(axis)
    wanted = np.repeat(np.take(ds.predicted_z.values, [0], axis=place), AXES[axis], axis=place)
    np.testing.assert_array_equal(still.predicted_z, wanted)
    by_hand = jd.swap(predicted_z=lambda ds: ds.predicted_z.isel({axis: 0}, drop=True))(ds)
    assert still.equals(by_hand) and jd.initial(axis, "predicted_z")(still).equals(still)
    np.testing.assert_array_equal(jd.initial(axis, "predicted_z", other=2.0)(ds).other, np.full(ds.other.shape, 2.0))


def test_a_function_may_return_a_number():
    np.testing.assert_array_equal(jd.swap(predicted_z=lambda ds: float(ds.level[1]))(make()).predicted_z, make().level[1])


def test_initial_is_combined_with_swaps_in_one_edit_of_the_data_as_they_were():
    ds = make()
    edited = jd.initial("token", "predicted_z", instant=lambda ds: 2 * ds.predicted_z, level="level")(ds)
    np.testing.assert_array_equal(edited.predicted_z, np.repeat(ds.predicted_z.values[:, :1], 3, axis=1))
    np.testing.assert_array_equal(edited.instant, 2 * ds.predicted_z.values.T)
    with pytest.raises(TypeError, match="level"):
        jd.initial("token", "level", level=0.0)


def test_a_failed_run_stays_failed():
    """NaN where a run is not ok: what a run's replacement is made of decides, as for a swap by name."""
    ds = make()
    ds.predicted_z[0] = np.nan
    assert jd.initial("token", "predicted_z")(ds).predicted_z.isnull().all("token").values.tolist() == [True, False]
    assert not jd.swap(predicted_z="instant")(ds).predicted_z.isnull().any()


REFUSED = [
    (jd.swap(level=lambda ds: ds.predicted_z), "level is replaced by values with an axis seed, which it lacks; it has token"),
    (jd.swap(level="predicted_z"), "level is replaced by values with an axis seed, which it lacks; it has token"),
    (jd.swap(level=lambda ds: ds.level.isel(token=[0])), "level is replaced by values at other places of the axis token"),
    (jd.swap(level=lambda ds: ds.level[::-1]), "level is replaced by values at other places of the axis token"),
    (jd.swap(level=lambda ds: ds.level.values), "level is replaced by an array without named axes: return a DataArray or a number"),
    (jd.initial("seed", "level"), "level has no axis seed along which to keep its first value; it has token"),
]


@pytest.mark.parametrize(("edit", "sentence"), REFUSED)
def test_what_does_not_fit_is_refused_in_one_sentence(edit, sentence):
    with pytest.raises(jd.UsageError) as error:
        edit(make())
    assert str(error.value) == sentence


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
    for edit in (
        jd.swap(nothing="instant"),
        jd.swap(predicted_z="nothing"),
        jd.swap(nothing=lambda ds: 0.0),
        jd.initial("token", "nothing"),
        jd.scaled(nothing=2.0),
        jd.rolled(nothing="token"),
    ):
        with pytest.raises(KeyError, match="nothing"):
            edit(make())


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


@pytest.mark.parametrize(
    ("dtype", "value", "becomes"),
    [
        ("int64", np.nan, "float64"),
        ("int64", 0.5, "float64"),
        ("int64", 2.0, "int64"),
        ("int8", 300, "int64"),
        ("float32", 0.1, "float32"),
        ("float32", 1e300, "float64"),
        ("float64", 1j, "complex128"),
        ("float64", np.inf, "float64"),
        ("bool", 2, "int64"),
    ],
)
def test_a_number_takes_the_variables_dtype_if_that_holds_it(dtype, value, becomes):
    ds = xr.Dataset({"predicted_z": ("token", np.ones(3, dtype))})
    swapped = jd.swap(predicted_z=value)(ds).predicted_z
    assert swapped.dtype == becomes
    np.testing.assert_array_equal(swapped, np.full(3, value).astype(becomes))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "bool", "float32"])
@pytest.mark.parametrize("factor", [2, -3, 1.5, "level"])
def test_scaled_whole_numbers_do_not_wrap(dtype, factor):
    ds = xr.Dataset(
        {"predicted_z": ("token", np.array([100, 1, 0]).astype(dtype)), "level": ("token", np.array([5, 6, 7], "int8"))}
    )
    by = np.array([5.0, 6, 7]) if factor == "level" else factor
    np.testing.assert_array_equal(jd.scaled(predicted_z=factor)(ds).predicted_z, ds.predicted_z.values.astype(float) * by)


@pytest.mark.parametrize("wanted", [3, np.int64(3), np.uint8(3)])
def test_numbers_of_every_library_are_needed(wanted):
    jd.need(make(), token=wanted)
    with pytest.raises(jd.Inconclusive, match="at least 3 values of seed are needed, got 2"):
        jd.need(make(), seed=wanted)


@pytest.mark.parametrize("wanted", [0.5, True, "adam", float("nan"), None, {"a": 1}, np.bool_(True)])
def test_what_is_neither_a_number_of_values_nor_a_list_is_refused(wanted):
    with pytest.raises(jd.UsageError, match="is not allowed: it is a number of values, or a tuple of them"):
        jd.need(make(), seed=wanted)


def test_values_in_an_array_are_values():
    with pytest.raises(jd.Inconclusive, match="seed = 77 is needed"):
        jd.need(make(), seed=np.array([77]))
