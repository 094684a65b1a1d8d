"""Memorisation: network, equations and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import xarray as xr

import jaxdyn as jd
from jaxdyn.data import digits
from jaxdyn.errors import UsageError
from jaxdyn.theories.memo import dynamics, label_input_corruptions, model, parameters
from jaxdyn.theories.memo.finite_sample import Points, trial
from jaxdyn.theories.memo.model import CONDITIONS
from jaxdyn.theories.memo.training import Memory, data
from jaxdyn.theories.memo.training import trial as training_trial
from tests.theories.galore.helpers import passed

# The constructed network against a dense triangular solve.


def drawn(n=30, d=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=d), rng.normal(size=(n, d)), rng.normal(size=n)


def test_against_a_triangular_solve():
    a, x, y = drawn()
    with jax.enable_x64(True):
        network = dynamics.construct(*(jnp.asarray(v) for v in (a, x, y)), jnp.ones(30, bool))
        values = np.asarray(dynamics.apply(network, jnp.asarray(x)))
    z = np.sort(x @ a)
    b = np.concatenate([[z[0] - 1], 0.9 * z[:-1] + 0.1 * z[1:]])
    w = scipy.linalg.solve_triangular(np.maximum(z[:, None] - b, 0), y[np.argsort(x @ a)], lower=True)
    np.testing.assert_allclose(network.b, b, rtol=1e-12)
    np.testing.assert_allclose(network.w, w, rtol=1e-6)
    np.testing.assert_allclose(values, y, atol=1e-9)
    assert dynamics.weights(30, 3) == network.w.size + network.b.size + network.a.size


def test_unused_points_and_a_unit_left_out():
    a, x, y = drawn()
    with jax.enable_x64(True):
        part = [jnp.asarray(v) for v in (a, x, y)]
        used = jnp.arange(30) < 12
        network = dynamics.construct(*part, used)
        np.testing.assert_allclose(dynamics.apply(network, part[1])[:12], y[:12], atol=1e-9)
        assert int((network.w != 0).sum()) == 12 and bool(jnp.isfinite(network.w).all())
        less = dynamics.construct(*part, used, 6)
        assert float(jnp.abs(dynamics.apply(less, part[1]) - y)[:12].max()) > 1e-3


# Perceptrons with masked units, and the conditions of the data.

init = jax.jit(model.init, static_argnums=1)  # as one program each: by itself every operation would be compiled


condition = jax.jit(model.condition, static_argnums=(3, 5))


def test_forward_against_numpy():
    params = init(jax.random.key(0), (5, 6, 6, 3))
    x = np.random.default_rng(1).normal(size=(4, 5)).astype(np.float32)
    h = x
    for w, b in params[:-1]:
        h = np.maximum(h @ np.asarray(w) + np.asarray(b), 0)
        h[:, 4:] = 0
    logits = h @ np.asarray(params[-1][0])
    np.testing.assert_allclose(jax.jit(model.apply)(params, x, 4), logits, rtol=2e-5, atol=1e-6)
    y = np.array([0, 1, 2, 0])
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(jax.jit(model.loss)(params, x, y, 4), -np.log(p[range(4), y]).mean(), rtol=1e-5)
    np.testing.assert_allclose(jax.jit(model.hits)(params, x, y, 4), (logits.argmax(-1) == np.asarray(y)).mean())


def test_start_has_he_s_variance():
    w = init(jax.random.key(2), (64, 512, 10))[0][0]
    assert float(w.var()) == pytest.approx(2 / 64, rel=0.05)  # 32768 entries: 5 standard errors are 4%


@pytest.mark.thinned
@pytest.mark.parametrize("kind", model.CONDITIONS)
def test_conditions(kind):
    x = (np.random.default_rng(3).normal(size=(300, 7)) + np.arange(7)).astype(np.float32)
    y = np.arange(300) % 10
    changed, labels = jax.device_get(condition(jax.random.key(4), x, y, kind, 0.0, 10))
    same = bool((changed == x).all())
    assert same == (kind in ("true", "random labels"))
    agree = float((labels == y).mean())
    assert agree < 0.25 if kind == "random labels" else agree == 1
    if kind.endswith("pixels"):
        np.testing.assert_allclose(np.sort(changed, -1), np.sort(x, -1))
    if kind == "shuffled pixels":
        order = np.argsort(np.asarray(changed).mean(0))
        np.testing.assert_allclose(np.asarray(changed)[:, order], np.asarray(x))


def test_a_share_of_the_labels_is_drawn_anew():
    x, y = np.zeros((4000, 2), np.float32), np.zeros(4000, np.int32)
    labels = condition(jax.random.key(5), x, y, "true", 0.5, 10)[1]
    assert np.mean(np.asarray(labels) != 0) == pytest.approx(0.45, abs=0.04)  # 5 standard errors


# The trial of the constructed network.


@pytest.mark.slow
def test_residuals_and_counts():
    ds = jd.sweep(trial, jd.grid(Points, points=[10.0, 60.0], less=[0.0, 1.0], most=64), 2)
    exact = ds.sel(less=0.0)
    assert float(exact.residual.max()) < 1e-7 and float(ds.residual.sel(less=1.0).min()) > 1e-4
    np.testing.assert_array_equal(exact.measured_weights, exact.predicted_weights)
    assert exact.measured_weights.sel(points=60.0).values.ravel()[0] == 130
    equal = jd.sweep(trial, jd.grid(Points, points=20.0, equal=1.0, most=64), 2)
    assert float(equal.residual.min()) > 1e-3


@pytest.mark.parametrize("wrong", [{"points": 501.0}, {"less": 2.0}, {"equal": 0.5}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Points(**wrong)


# Judges of destroyed images, on made-up runs.


def made(steps):
    """Eight runs of every condition."""
    noise = np.random.default_rng(0).normal(size=(5, 8))
    ds = {"measured_first": np.array(steps)[:, None] + noise, "measured_right": np.ones((5, 8)), "measured_start": 0.1 + 0 * noise}
    ds = {name: (("condition", "seed"), v) for name, v in ds.items()} | {"status": (("condition", "seed"), noise)}
    ds["steps"] = ("condition", "seed", "step"), np.broadcast_to([0.0, 100.0, 200.0], (5, 8, 3))
    return xr.Dataset(ds, coords={"condition": list(CONDITIONS)})


def test_input_corruptions_conditions():
    ds = made([50, 125, 50, 45, 40])
    assert passed(label_input_corruptions.judge_conditions(ds)) == [True, True]
    assert label_input_corruptions.STILL_INPUTS.keys() == {c.name for c in label_input_corruptions.judge_conditions(ds)}
    assert passed(label_input_corruptions.judge_conditions(ds.roll(condition=1, roll_coords=False)))[1] is False
    gate, *readings = label_input_corruptions.judge_times(ds)
    assert gate.passed and [r.value for r in readings] == pytest.approx(np.log([1, 45 / 50, 40 / 50]), abs=0.05)
    assert label_input_corruptions.UNLEARNABLE.keys() == {r.name for r in readings}
    assert label_input_corruptions.to_the_end(ds) == pytest.approx(np.log(200 / 50), abs=0.05)


# Judges of labels, on made-up runs.


def random_labels_made(test, **coords):
    """Eight runs for every mean test accuracy."""
    test = np.asarray(test, float)
    dims = (*coords, "seed")
    noise = 0.01 * np.random.default_rng(0).normal(size=(*test.shape, 8))
    ds = {"measured_test": test[..., None] + noise, "measured_right": np.ones((*test.shape, 8))}
    ds |= {
        "measured_start": np.full_like(noise, 0.1),
        "test_start": 0.1 + noise,
        "chance": np.full_like(noise, 0.1),
        "status": noise,
    }
    return xr.Dataset({name: (dims, v) for name, v in ds.items()}, coords={k: list(v) for k, v in coords.items()})


def test_random_labels():
    ds = random_labels_made(0.1)
    assert passed(label_input_corruptions.judge_random(ds)) == [True, True]
    assert {*label_input_corruptions.STILL, *label_input_corruptions.KNOWS} == {
        c.name for c in label_input_corruptions.judge_random(ds)
    }
    assert [
        number(ds) for number in (*label_input_corruptions.STILL.values(), *label_input_corruptions.KNOWS.values())
    ] == pytest.approx([0.1, 1])


def test_curve():
    ds = random_labels_made([0.96, 0.8, 0.6, 0.3], corruption=label_input_corruptions.SHARES)
    assert passed(label_input_corruptions.judge_curve(ds)) == [True, True]
    assert passed(label_input_corruptions.judge_curve(ds.assign(measured_test=0 * ds.measured_test)))[1] is False
    assert passed(label_input_corruptions.judge_curve(ds.roll(corruption=1, roll_coords=False)))[1] is False


def test_regularisers():
    ds = random_labels_made([[0.95, 0.96], [0.95, 0.96]], decay=(0.0, 1.0), noise=(0.0, 0.5))
    assert passed(label_input_corruptions.judge_regular(ds)) == [True, True]
    assert label_input_corruptions.above_chance(ds) == pytest.approx(0.86, abs=0.01)


# Short training on digits.

SMALL = {"images": 40, "hidden": 32, "active": 32.0, "records": 4}


@pytest.mark.slow
def test_true_and_random_labels_are_fitted():
    ds = jd.sweep(training_trial, jd.grid(Memory, condition=["true", "random labels"], every=60.0, **SMALL), 2)
    assert (ds.measured_right == 1).all() and (ds.measured_first <= 240).all()
    test = ds.measured_test.mean("seed")
    assert float(test.sel(condition="true")) > 0.5 > 0.25 > float(test.sel(condition="random labels"))
    assert (ds.weights == 64 * 32 + 32 + 32 * 10 + 10).all()


@pytest.mark.slow
def test_clashing_twins_cannot_be_fitted():
    (x, y), (x_test, y_test) = jax.device_get(jax.jit(lambda key: data(Memory(clashing=1.0, images=40), key))(jax.random.key(0)))
    np.testing.assert_array_equal(x[1::2], x[::2])
    assert (y[1::2] == (y[::2] + 1) % 10).all()
    assert x_test.shape == (1757, digits.PIXELS) and y_test.shape == (1757,)
    ds = jd.sweep(training_trial, jd.grid(Memory, clashing=[0.0, 1.0], every=20.0, **SMALL), 1)
    assert float(ds.measured_right.sel(clashing=1.0).max()) <= 0.5 < float(ds.measured_right.sel(clashing=0.0).min())
    assert (ds.measured_first.sel(clashing=1.0) == 100).all()  # one record after the last


@pytest.mark.parametrize("wrong", [{"active": 129.0}])
def test_training_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Memory(**wrong)


def test_parameters_by_hand():
    ds = jd.sweep(parameters.trial, jd.grid(parameters.Perceptrons, side=[28.0, 32.0]), 1)
    wide = 2352 * 512 + 512
    assert dict(zip(parameters.NAMES, ds.predicted_parameters.sel(side=28.0).squeeze().values.tolist(), strict=True)) == {
        "3x512": wide + 2 * (512 * 512 + 512) + 5130,
        "1x512": wide + 5130,
    }
    assert [parameters.judge(ds.sel(side=[side]))[0].passed for side in (28, 32)] == [True, False]
