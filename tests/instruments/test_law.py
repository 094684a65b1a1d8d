"""Laws: which side sees what, their errors against plain NumPy, until when they hold, and of what they cannot be asked."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.instruments.law import Asked, Law, errors, holds_until, nothing_moves, shuffled, sides

SHAPE = nn.Transformer(vocabulary=5, width=4, hidden=8)
DOUBLE = Law(
    name="double",
    title="Twice",
    theory="",
    source="",
    read=lambda moment: {},
    own=("y",),
    measure=lambda own: own["y"],
    predict=lambda others: 2 * others["x"] + others["start_y"],
    dims="entry",
    bound=0.1,
)


def arrays(seed=0, time=6, own=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((2, time, own)), rng.standard_normal((2, time, own))


def labelled(x):
    return xr.DataArray(x, dims=("seed", "time", "law_entry"))


def test_the_prediction_sees_no_own_reading_but_its_start():
    seen = {}

    def predict(others):
        seen.update(others)
        return others["x"]

    law = dataclasses.replace(DOUBLE, predict=predict)
    curves = {"x": jnp.ones((4, 2)), "y": jnp.arange(8.0).reshape(4, 2)}
    both = sides(law, curves, jnp.arange(4.0), 0.1)
    assert set(seen) == {"x", "start_y", "step", "lr"}
    np.testing.assert_array_equal(seen["start_y"], curves["y"][0])
    np.testing.assert_array_equal(both.measured, curves["y"])
    assert bool(both.speaks.all())


def test_where_a_law_speaks_is_recorded():
    law = dataclasses.replace(DOUBLE, speaks=lambda curves: curves["y"][:, 0] > 0)
    curves = {"x": jnp.ones((3, 1)), "y": jnp.array([[0.0], [1.0], [0.0]])}
    np.testing.assert_array_equal(sides(law, curves, jnp.arange(3.0), 0.1).speaks, [False, True, False])


def test_sides_of_different_shapes_and_unread_names_are_refused():
    curves = {"x": jnp.ones((4, 2)), "y": jnp.ones((4, 3))}
    with pytest.raises(UsageError, match=r"double is not allowed: its sides have different shapes, measured \(4, 3\)"):
        sides(dataclasses.replace(DOUBLE, predict=lambda others: others["x"]), curves, jnp.arange(4.0), 0.1)
    with pytest.raises(UsageError, match="predict of the law double asks for 'y', and it is given x, start_y, step, lr"):
        sides(dataclasses.replace(DOUBLE, predict=lambda others: others["y"]), curves, jnp.arange(4.0), 0.1)
    with pytest.raises(UsageError, match=r"dims='' of the law double is not allowed: .* the shape is \(4, 3\)"):
        alike = {"x": jnp.ones((4, 3)), "y": jnp.ones((4, 3))}
        sides(dataclasses.replace(DOUBLE, dims=""), alike, jnp.arange(4.0), 0.1)
    with pytest.raises(UsageError, match="needs='nose' of the law double is not allowed: needs are among shares"):
        dataclasses.replace(DOUBLE, needs=("nose",))
    with pytest.raises(UsageError, match="own='z' is not allowed: the law double reads x, y"):
        sides(dataclasses.replace(DOUBLE, own=("z",)), curves, jnp.arange(4.0), 0.1)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 5))
def test_errors_are_those_of_plain_numpy(seed, silent):
    p, m = arrays(seed)
    speaks = np.arange(6) >= silent
    found = errors(labelled(p), labelled(m), xr.DataArray(speaks, dims="time"), ["law_entry"]).values
    for run in range(2):
        far = size = 0.0
        for t in range(6):
            if t < silent:
                assert np.isnan(found[run, t])
                continue
            far = max(far, np.linalg.norm(p[run, t] - m[run, t]))
            size = max(size, np.linalg.norm(m[run, t] - m[run, 0]))
            assert np.isnan(found[run, t]) if size == 0 else found[run, t] == pytest.approx(far / size)


def test_nothing_moves_has_error_one():
    _, m = arrays(3)
    measured = jnp.asarray(np.swapaxes(m, 0, 1))
    still = np.swapaxes(np.asarray(nothing_moves(2 * measured, measured)), 0, 1)
    found = errors(labelled(still), labelled(m), xr.DataArray(np.ones(6, bool), dims="time"), ["law_entry"])
    np.testing.assert_allclose(found.isel(time=slice(1, None)), 1.0, rtol=1e-6)


def test_absolute_errors_are_mean_differences():
    p, m = arrays(4)
    found = errors(labelled(p), labelled(m), xr.DataArray(np.ones(6, bool), dims="time"), ["law_entry"], absolute=True)
    np.testing.assert_allclose(found, np.maximum.accumulate(np.abs(p - m).mean(-1), 1))


@pytest.mark.parametrize(
    ("error", "last"),
    [
        ([np.nan, 0.01, 0.02, 0.3], 2),
        ([np.nan, 0.3, 0.4, 0.5], -1),
        ([0.0, 0.0], 1),
        ([0.2, 0.2], -1),
        ([np.nan, 1.0, 0.01, 0.005], 3),  # it falls as the quantity moves farther
        ([np.nan, 0.01, 0.3, 0.01, 0.3], 3),
        ([np.nan, np.nan], -1),
    ],
)
def test_until_when_a_law_holds(error, last):
    assert int(holds_until(xr.DataArray(error, dims="time"), 0.1)) == last


def test_shuffled_times_are_the_same_values_elsewhere():
    p, _ = arrays(5)
    other = shuffled(labelled(p)).values
    assert not np.allclose(other, p)
    np.testing.assert_allclose(np.sort(other, 1), np.sort(p, 1))


def test_two_times_are_shuffled():
    both = xr.DataArray([[1.0, 2.0]], dims=("seed", "time"))
    np.testing.assert_array_equal(shuffled(both), [[2.0, 1.0]])


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("entry", [0, slice(None)])
def test_a_prediction_that_is_no_number_is_infinitely_wrong_and_a_measurement_that_is_none_is_no_error(absolute, entry):
    p, m = arrays(6)
    m[:, :, 0] += np.arange(6)
    everywhere, broken = xr.DataArray(np.ones(6, bool), dims="time"), p.copy()
    broken[0, 3:, entry] = np.nan
    sound = errors(labelled(p), labelled(m), everywhere, ["law_entry"], absolute).values
    found = errors(labelled(broken), labelled(m), everywhere, ["law_entry"], absolute).values
    np.testing.assert_array_equal(found[0], [*sound[0, :3], *[np.inf] * 3])
    np.testing.assert_array_equal(found[1], sound[1])
    early = xr.DataArray(np.arange(6) < 3, dims="time")  # of what comes then nothing is said
    assert np.isfinite(errors(labelled(broken), labelled(m), early, ["law_entry"], absolute).values[0, -1])
    unread = m.copy()
    unread[0, 3, entry] = np.nan
    found = errors(labelled(p), labelled(unread), everywhere, ["law_entry"], absolute).values
    assert np.isnan(found[0, 3:]).all() and np.isfinite(found[0, 1:3]).all() and np.isfinite(found[1, 1:]).all()


@pytest.mark.parametrize(
    ("fields", "asked", "sentence"),
    [
        ({}, {}, ""),
        ({"needs": ("MLP",)}, {"shape": nn.Transformer(vocabulary=5, width=4, mlp="none")}, "This network has no MLP."),
        ({"data": ("trees",)}, {}, "It is asked of the data trees, not of facts."),
        ({"optimizers": ("sgd",)}, {"optimizer": "adam"}, "It is about the optimizer sgd, not adam."),
        ({"same_batch": True}, {}, "It is about descent on one batch, and each step has a new one."),
        ({"refuses": lambda asked: f"Not of width {asked.shape.width}."}, {}, "Not of width 4."),
    ],
)
def test_why_a_law_cannot_be_asked(fields, asked, sentence):
    given = {"shape": SHAPE, "data": "facts", "optimizer": "sgd", "same_batch": False} | asked
    assert dataclasses.replace(DOUBLE, **fields).why_not(Asked(**given)) == sentence
