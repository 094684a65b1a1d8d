"""From lazy to rich training: network, equations and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.plotting import render
from jaxdyn.theories.kumar import dynamics, lazy, model
from jaxdyn.theories.kumar.dynamics import settled
from jaxdyn.theories.kumar.lazy import Regression, trial
from jaxdyn.theories.kumar.moments import Moments, cubature, judge
from jaxdyn.theories.kumar.moments import trial as moments_trial

# The kernel's statistics and its learning times.

# Expected loss, kernel and gradient descent with a frozen kernel against sampling, differences and a linear model.


def test_terms_sum_to_the_loss_of_many_samples(x64):
    w = model.init(jax.random.key(0), 6, 3, 1.0, "float64")
    x = model.inputs(jax.random.key(1), 200_000, 3, "float64")
    loss = model.error(model.Network(1.5, 0.5, w, 0.0), w, x)
    assert float(jnp.sum(dynamics.expected_terms(w, 1.5, 0.5))) == pytest.approx(float(loss), rel=0.03)


def test_kernel_is_the_inner_product_of_differences(x64):
    w = np.asarray(model.init(jax.random.key(2), 4, 3, 1.0, "float64"))
    x, z = (np.asarray(model.inputs(jax.random.key(i), n, 3, "float64")) for i, n in ((3, 5), (4, 2)))

    def slopes(at):
        out = []
        for i in range(w.size):
            step = np.zeros(w.size)
            step[i] = 1e-6
            two = [model.outputs(model.Network(2.0, 0.5, w, 0.0), w + s * step.reshape(w.shape), at) for s in (1, -1)]
            out.append((np.asarray(two[0]) - np.asarray(two[1])) / 2e-6)
        return np.stack(out, 1)

    expected = slopes(x) @ slopes(z).T * 4 / 4.0
    np.testing.assert_allclose(dynamics.kernel(w, 0.5, x, z), expected, atol=1e-8)


def test_frozen_descent_is_that_of_a_linear_model(x64):
    rng = np.random.default_rng(0)
    features, across, missing, rate, steps = rng.normal(size=(6, 9)), rng.normal(size=(3, 9)), rng.normal(size=6), 0.1, 37
    v = np.zeros(9)
    for _ in range(steps):
        v -= rate / 6 * features.T @ (features @ v - missing)
    added, squared = dynamics.frozen(features @ features.T, across @ features.T, missing, rate, steps)
    np.testing.assert_allclose(added, across @ v, rtol=1e-9)
    assert float(squared) == pytest.approx(v @ v, rel=1e-9)
    assert float(dynamics.movement(4.0, 2.0, 9, 1.5)) == pytest.approx(2.0)


# When losses settle below a level.


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([1.0, 0.1, 0.001, 0.001], 1.5),
        ([1.0, 0.001, 1.0, 0.0001], 2.5),  # the last fall counts
        ([1.0, 1.0, 1.0, 1.0], 3.0),  # never: the last time
        ([0.001, 0.001, 0.0001, 0.0001], 0.0),  # always: the first
    ],
)
def test_last_fall_counts(x64, losses, expected):
    assert float(settled(jnp.arange(4.0), jnp.asarray(losses), 0.01)) == pytest.approx(expected)


# The network and its target against NumPy.


def test_outputs_target_and_error_are_numpys(x64):
    key = jax.random.key(0)
    w, x = model.init(key, 5, 3, 2.0, "float64"), model.inputs(key, 7, 3, "float64")
    first = model.init(jax.random.key(1), 5, 3, 1.0, "float64")
    assert w.dtype == jnp.float64

    def mean(v):
        h = np.asarray(x) @ np.asarray(v).T
        return (h + 0.25 * h**2).mean(1)

    expected = 0.5 * 3 * np.asarray(x)[:, 0] ** 2
    np.testing.assert_allclose(model.target(x), expected, rtol=1e-12)
    for centred in (0.0, 1.0):
        net = model.Network(2.0, 0.5, first, centred)
        out = 2 * (mean(w) - centred * mean(first))
        np.testing.assert_allclose(model.outputs(net, w, x), out, rtol=1e-12)
        assert float(model.error(net, w, x)) == pytest.approx(np.mean((out - expected) ** 2), rel=1e-12)


def test_inputs_have_length_one_on_average(x64):
    x = model.inputs(jax.random.key(2), 4000, 10, "float64")
    assert float(jnp.mean(jnp.sum(x**2, 1))) == pytest.approx(1, abs=0.03)
    w = model.init(jax.random.key(3), 400, 10, 0.5, "float32")
    assert w.dtype == jnp.float32 and float(jnp.std(w)) == pytest.approx(0.5, rel=0.05)


# Networks trained on a square, and the judges of delay and lazy limit on made-up runs.


@pytest.mark.slow
def test_large_scales_are_kernel_regression_and_small_ones_learn_features():
    fields = {"dimension": 5, "nodes": 16, "samples": 14, "tests": 60, "every": 5, "centred": 1.0}
    ds = jd.sweep(trial, jd.grid(Regression, alpha=[0.5, 1e3], **fields), seeds=2)
    lazy, rich = (ds.sel(alpha=a) for a in (1e3, 0.5))
    np.testing.assert_allclose(lazy.measured_test, lazy.predicted_test, rtol=0.02)
    np.testing.assert_allclose(lazy.measured_movement, lazy.predicted_movement, rtol=0.02)
    assert float(lazy.kernel_change.max()) < 0.02 < 0.2 < float(rich.kernel_change.min())
    assert bool((rich.fit_end < 0.1).all()) and bool((ds.fitted <= ds["at"].isel(record=-1)).all())
    np.testing.assert_allclose(ds.measured_delay, ds.general - ds.fitted)


def runs(alpha, seeds=8, records=6):
    """Delays that rise like alpha^1.3, differences that fall like 1/alpha, with scatter."""
    rng, alpha = np.random.default_rng(2), np.asarray(alpha)
    jitter = np.exp(0.02 * rng.normal(size=(3, seeds, 1)))
    dims, ones = ("seed", "alpha"), np.ones((seeds, len(alpha)))
    curve = ones[..., None] * np.geomspace(1, 1e-3, records)
    return xr.Dataset(
        {
            "predicted_delay": (dims, alpha * ones),
            "measured_delay": (dims, 100 * alpha**1.3 * jitter[0]),
            "fitted": (dims, 20 * alpha**0.4 * ones),
            "predicted_movement": (dims, 10 / alpha * ones),
            "measured_movement": (dims, 10 / alpha * (1 - 0.5 / alpha * jitter[1])),
            "kernel_change": (dims, 0.6 / alpha * jitter[2]),
            "predicted_test": (dims, 0.4 * ones),
            "measured_test": (dims, 0.4 * (1 - 0.9 / alpha * jitter[1])),
            "fit_end": (dims, 1e-4 * ones),
            "first_norm": (dims, 5 * ones),
            "status": (dims, np.zeros(ones.shape, int)),
            "first_test": (dims, ones),
            "fit_curve": ((*dims, "record"), curve),
            "test_curve": ((*dims, "record"), curve),
            "at": ((*dims, "record"), ones[..., None] * np.arange(records)),
        },
        {"alpha": alpha, "seed": np.arange(seeds)},
    )


def failed(judge, ds):
    return {c.name for c in judge(ds) if not c.passed}


@pytest.fixture
def rich():
    ds = runs(lazy.ALPHAS)
    return ds.assign(measured_movement=1.3 * ds.alpha**-0.35 * ds.fit_end / ds.fit_end, measured_test=0.1 * ds.predicted_test)


def test_delay_holds_on_lawful_data_and_rejects_others(rich):
    assert not failed(lazy.judge_rich, rich)
    exchanged = jd.rolled(measured_delay="alpha", measured_movement="alpha", kernel_change="alpha")(rich)
    assert len(failed(lazy.judge_rich, exchanged)) == 5
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed"):
        lazy.judge_rich(rich.isel(seed=slice(3)))


def test_limit_holds_on_lawful_data_and_rejects_others():
    ds = runs(lazy.LIMIT)
    assert not failed(lazy.judge_limit, ds)
    still = failed(lazy.judge_limit, jd.swap(predicted_test="first_test", predicted_movement=0.0)(ds))
    assert {"predicted / test loss, largest alpha", "predicted / movement, largest alpha"} <= still
    assert "power of alpha in the difference, kernel" in failed(lazy.judge_limit, ds.assign(kernel_change=ds.kernel_change**0.8))


def test_figures_are_drawn(rich):
    for plot, ds in ((lazy.plot, rich), (lazy.plot_limit, runs(lazy.LIMIT))):
        assert "<svg" in render(plot, ds)


# Both sides of the identities, the cubature, and the judge on made-up runs.


def test_identities_hold_for_normal_inputs_only():
    ds = jd.sweep(moments_trial, jd.grid(Moments, dimension=3, nodes=5, law=["normal", "uniform"]), seeds=2)
    assert float(jd.relative_error(ds, "kernel", "point other").max()) < 1e-12
    loss = jd.relative_error(ds, "loss")
    assert float(loss.sel(law="normal").max()) < 1e-12 < 1e-2 < float(loss.sel(law="uniform").max())


@pytest.mark.parametrize(("kind", "fourth"), [("normal", 3.0), ("uniform", 9 / 5)])
def test_cubature_has_the_moments_of_its_law(kind, fourth):
    at, weight = cubature(kind, 2)
    x = at * np.sqrt(2)
    assert weight.sum() == pytest.approx(1) and (weight @ x**2) == pytest.approx(1)
    assert (weight @ x**4) == pytest.approx(fourth) and weight @ (x[:, 0] * x[:, 1]) ** 2 == pytest.approx(1)


def test_judge_holds_on_lawful_data_and_rejects_others():
    rng = np.random.default_rng(0)
    loss, kernel = rng.random(8), rng.normal(size=(8, 3, 3))
    arrays = {f"{side}_loss": (("seed",), loss) for side in ("predicted", "measured")}
    arrays |= {f"{side}_kernel": (("seed", "point", "other"), kernel) for side in ("predicted", "measured")}
    ds = xr.Dataset(arrays)
    assert all(c.passed for c in judge(ds))
    for name in ("loss", "kernel"):
        assert len([c for c in judge(jd.scaled(**{f"predicted_{name}": 1 + 1e-9})(ds)) if not c.passed]) == 1
