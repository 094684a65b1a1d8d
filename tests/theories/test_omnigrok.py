"""Omnigrok: network, equations and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.omnigrok import dynamics, model
from jaxdyn.theories.omnigrok import shell_delay as shell_topic
from jaxdyn.theories.omnigrok.shell_delay import SPHERES, Student, judge_delay, trial

# Data that the tests of omnigrok's judges share.


@pytest.fixture
def lawful():
    """Data as the theory predicts them, with scatter over eight seeds."""
    rng, seeds = np.random.default_rng(4), 8
    decay, start = np.array([0.25, 0.125, 0.0625]), np.array(SPHERES)
    edge = rng.uniform(5, 7, (seeds, 1)) * np.ones(3)
    wait = np.log(10 / edge) / (1e-3 * decay)
    scatter = np.exp(0.05 * rng.normal(size=(2, seeds, 1)))
    test = 0.01 * np.exp(2 * np.log(start / 0.9) ** 2) * np.ones((seeds, 1))
    fit = np.where(start < 0.5, 0.2, 1e-3) * np.ones((seeds, 1))
    arrays = {
        "predicted_delay": (("seed", "decay"), wait),
        "measured_delay": (("seed", "decay"), wait * scatter[0]),
        "predicted_edge": (("seed", "decay"), edge),
        "measured_edge": (("seed", "decay"), edge * scatter[1]),
        "sphere_test": (("seed", "start"), test),
        "sphere_fit": (("seed", "start"), fit),
    }
    return xr.Dataset(arrays, {"decay": decay, "start": start})


# Where curves pass a level, and the delay.


def test_passage_is_the_first_fall_in_logarithms(x64):
    x = jnp.array([0.0, 10.0, 20.0, 30.0])
    values = jnp.array([100.0, 10.0, 0.1, 1.0])
    assert float(dynamics.passage(x, values, 1.0)) == pytest.approx(15)
    assert float(dynamics.passage(x, values, 1e-9)) == pytest.approx(30)
    assert float(dynamics.passage(x, values, 1e3)) == pytest.approx(0)


def test_edge_is_the_outermost_rise(x64):
    norms = jnp.array([1.0, 2.0, 4.0, 8.0])
    assert float(dynamics.edge(norms, jnp.array([9.0, 0.1, 0.1, 10.0]), 1.0)) == pytest.approx(np.sqrt(32))
    assert float(dynamics.edge(norms, jnp.array([0.1, 0.1, 0.1, 0.1]), 1.0)) == pytest.approx(8)
    assert float(dynamics.edge(norms, jnp.array([9.0, 9.0, 9.0, 9.0]), 1.0)) == pytest.approx(1)


def test_delay_is_the_time_of_an_exponential(x64):
    rate = jnp.array([1e-2, 1e-3])
    steps = np.asarray(dynamics.delay(8.0, 5.0, rate))
    np.testing.assert_allclose(8 * np.exp(-np.asarray(rate) * steps), 5, rtol=1e-12)


# Teacher and student against NumPy.

SIZES = (3, 6, 6, 2)


@pytest.mark.slow
def test_network_is_numpys_and_stays_float32(x64):
    layers = model.init(jax.random.key(0), SIZES, 1.0)
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    hidden = x
    for w, b in layers[:-1]:
        hidden = np.tanh(hidden @ np.asarray(w) + np.asarray(b))
    slow = hidden @ np.asarray(layers[-1][0]) + np.asarray(layers[-1][1])
    found = jax.jit(model.apply)(layers, x)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, slow, atol=1e-6)
    assert float(model.error(layers, jnp.asarray(x), found + 0.5)) == pytest.approx(0.25, rel=1e-5)


@pytest.mark.slow
def test_start_scales_with_alpha_and_the_fan_in(x64):
    one, two = (model.init(jax.random.key(1), SIZES, alpha) for alpha in (1.0, 2.0))
    assert float(model.norm(two) / model.norm(one)) == pytest.approx(2, rel=1e-6)
    for (w, b), fan_in in zip(one, SIZES[:-1], strict=True):
        assert max(float(jnp.max(jnp.abs(w))), float(jnp.max(jnp.abs(b)))) <= fan_in**-0.5
    slow = np.sqrt(sum(float(np.sum(np.square(leaf))) for leaf in jax.tree.leaves(one)))
    assert float(model.norm(one)) == pytest.approx(slow, rel=1e-6)
    held = model.rescale(one, jnp.float32(3.0))
    assert float(model.norm(held)) == pytest.approx(3, rel=1e-6)
    np.testing.assert_allclose(held[0][0] / one[0][0], 3 / slow, rtol=1e-5)


def test_teacher_labels_both_sets(x64):
    data = model.sample(jax.random.key(2), SIZES, 5, 400)
    assert data.y.shape == (5, 2) and data.y_test.shape == (400, 2)
    assert float(data.variance) == pytest.approx(np.var(np.asarray(data.y_test), 0).mean(), rel=1e-5)


# The judge of the delay on data that follow the law.


def passed(ds, of=judge_delay):
    return all(c.passed for c in of(ds))


def test_judge_holds_on_lawful_data_and_rejects_others(lawful):
    assert passed(lawful)
    for factor in (0.7, 1.5):
        assert not passed(jd.scaled(predicted_delay=factor)(lawful))
    no_power = lawful.assign(measured_delay=lawful.measured_delay * lawful.decay / 0.25)
    assert not passed(no_power), "a delay that the decay does not set"
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed"):
        judge_delay(lawful.isel(seed=slice(4)))


# The judge of the shell on data that follow the law.


def test_shell_judge_holds_on_lawful_data_and_rejects_others(lawful):
    assert passed(lawful, shell_topic.judge_shell)
    for factor in (0.8, 1.25):
        assert not passed(jd.scaled(predicted_edge=factor)(lawful), shell_topic.judge_shell)
    assert not passed(jd.swap(sphere_test=0.02)(lawful), shell_topic.judge_shell)
    tiny = jd.swap(sphere_test=lambda ds: 1e-6 * ds.sphere_test)(lawful)
    assert not passed(tiny, shell_topic.judge_shell), "losses as good as fitted form no shell"


# Students on spheres and with decay, and what their setting refuses.


@pytest.fixture(scope="module")
def tiny():
    grid = jd.grid(Student, decays=(1.0, 0.5), horizon=0.5, settle=200, hidden=8, samples=30, tests=50)
    return jd.sweep(trial, grid, seeds=2)


@pytest.mark.slow
def test_spheres_hold_their_norm_and_decay_follows_its_law(tiny):
    start = tiny.sphere_norm / tiny.sphere_norm.sel(start=1.0)
    np.testing.assert_allclose(start, np.broadcast_to(start.start, start.shape), rtol=1e-4)
    assert set(tiny.sizes) >= {"seed", "decay", "start", "student", "record"} and tiny.sizes["student"] == 4
    np.testing.assert_allclose(tiny.steps.isel(student=0, record=-1), 500)
    product = tiny.predicted_delay * tiny.decay
    np.testing.assert_allclose(product.isel(decay=0), product.isel(decay=1), rtol=1e-5)
    assert float(tiny.fit_curve.isel(record=-1).max()) < float(tiny.fit_curve.isel(record=0).min())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"decays": (0.1, 0.2)}, "positive and falling"),
        ({"decays": (0.1,)}, "two or more"),
    ],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Student(**fields)
