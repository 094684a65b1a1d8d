"""Descent on quadratics against recursions in NumPy, how its noise scales, and the judges of both."""

import functools

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.cal import sgd_noise
from tests.theories.cal.helpers import distorted, passed


@pytest.mark.slow
def test_modes_follow_the_recursion_of_heavy_ball():
    """x_{n+1} = (1 + mu - eta h) x_n - mu x_{n-1}, from curvatures and amplitudes alone; without momentum as predicted."""
    grid = jd.grid(sgd_noise.Modes, eta=[0.3, 1.1], momentum=[0.0, 0.5], size=3, steps=8)
    ds = jd.sweep(sgd_noise.modes_trial, grid, 2)
    x, factor = ds.measured_amplitude, 1 + ds.momentum - ds.eta * ds.curvature
    before, now, after = (x.isel(step=slice(i, i + 6)).drop_vars("step") for i in range(3))
    np.testing.assert_allclose(after, (factor * now - ds.momentum * before).transpose(*after.dims), atol=1e-12)
    plain = ds.sel(momentum=0.0)
    np.testing.assert_allclose(plain.measured_amplitude, plain.predicted_amplitude, rtol=1e-9, atol=1e-14)
    starts = plain.measured_amplitude.isel(step=0) / (1 - plain.eta * plain.curvature)
    np.testing.assert_allclose(starts.isel(eta=0), starts.isel(eta=1), rtol=1e-9, err_msg="both rates start at the same point")


@pytest.mark.slow
def test_covariances_scale_with_the_squared_noise_on_the_same_draws():
    grid = jd.grid(
        sgd_noise.Noise, sigma=[0.5, 1.0], problem=["scalar", "matrix"], size=2, replicas=4, starts=4, burn_in=4, steps=40
    )
    ds = jd.sweep(sgd_noise.noise_trial, grid, 2)
    for name in ("measured_covariance", "predicted_covariance", "covariance_error", "measured_transient", "diffusion"):
        np.testing.assert_allclose(ds[name].sel(sigma=1.0), 4 * ds[name].sel(sigma=0.5), rtol=1e-9, atol=1e-14, err_msg=name)
    scalar = ds.sel(problem="scalar", sigma=0.5)
    eta, h = 0.2, 1.3
    exact = eta * 0.25 / (h * (2 - eta * h)) * np.eye(2)
    np.testing.assert_allclose(scalar.predicted_covariance, np.broadcast_to(exact, (2, 2, 2)), rtol=1e-12, atol=1e-15)
    first = scalar.predicted_transient.sel(step=1)
    np.testing.assert_allclose(first, 2 * eta**2 * 0.25, rtol=1e-12, err_msg="after one step the noise of that step alone")
    matrix = ds.measured_covariance.sel(problem="matrix")
    np.testing.assert_allclose(matrix, matrix.transpose("sigma", "seed", "col", "row").values, atol=1e-14)


def test_standard_errors_are_those_of_the_replicas(x64):
    x = np.random.default_rng(0).normal(size=(7, 3))
    mean, error = sgd_noise.mean_and_error(x, 7)
    np.testing.assert_allclose(mean, x.mean(0), rtol=1e-12)
    np.testing.assert_allclose(error, x.std(0, ddof=1) / 7**0.5, rtol=1e-12)


def noise_data():
    """32 made-up problems in three dimensions, measured with errors of 2% of the law."""
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(32, 2, 3, 3))
    law = mix @ np.swapaxes(mix, -1, -2)
    variance = np.diagonal(law, axis1=-2, axis2=-1)
    unit = np.sqrt(variance[..., None] * variance[..., None, :])
    noise = rng.normal(size=law.shape)
    noise = (noise + np.swapaxes(noise, -1, -2)) / 2**0.5 * np.where(np.eye(3), 0.5**0.5, 1)
    entries, steps = ("seed", "eta", "row", "col"), ("seed", "eta", "step")
    transient = rng.uniform(1, 2, (32, 2, 4))
    return xr.Dataset(
        {
            "predicted_covariance": (entries, law),
            "measured_covariance": (entries, law + 0.01 * unit * noise),
            "covariance_error": (entries, 0.01 * unit),
            "diffusion": (entries, 0.9 * law),
            "predicted_transient": (steps, transient),
            "measured_transient": (steps, transient * (1 + 0.02 * rng.normal(size=transient.shape))),
        }
    )


@functools.cache
def modes_data():
    return jd.sweep(sgd_noise.modes_trial, jd.grid(sgd_noise.Modes, eta=[0.3, 1.6], momentum=[0.0, 0.5]), 2)


def refused(checks):
    """Which checks fail for certain."""
    return {i for i, c in enumerate(checks) if c.passed is False}


def test_noise_judges():
    ds = noise_data()
    assert passed(sgd_noise.judge_variance(ds)) and passed(sgd_noise.judge_covariance(ds))
    for bad in (distorted(ds, "covariance"), ds.assign(predicted_covariance=ds.diffusion)):
        assert refused(sgd_noise.judge_variance(bad)) == {0} and refused(sgd_noise.judge_covariance(bad)) == {0, 1}
    assert refused(sgd_noise.judge_variance(distorted(ds, "transient", 1.06))) == {1}


def test_deviations_of_single_problems_are_found_where_their_mean_is_zero():
    ds = noise_data()
    sign = xr.DataArray(np.where(np.arange(32) % 2, 1, -1), dims="seed")
    off = ds.assign(measured_covariance=ds.measured_covariance + 0.05 * sign * ds.predicted_covariance)
    assert refused(sgd_noise.judge_covariance(off)) == {1}


def test_modes_judge():
    ds = modes_data()
    assert passed(sgd_noise.judge_modes(ds.sel(momentum=0.0)))
    assert not passed(sgd_noise.judge_modes(ds.sel(momentum=0.5)))
    for name in ("amplitude", "rate"):
        assert not passed(sgd_noise.judge_modes(distorted(ds.sel(momentum=0.0), name)))


def test_modes_on_both_edges_are_judged_by_what_rounding_leaves_of_them():
    """At eta lambda = 1 an amplitude vanishes and its rate is rounding; at eta lambda = 2 rounding decides what grows."""
    curvatures = (2.0, 1.25 + 1e-15, 1.25, 0.625 + 1e-9, 0.625, 0.1)
    ds = jd.sweep(sgd_noise.modes_trial, jd.grid(sgd_noise.Modes, eta=[1.6], curvatures=curvatures), 2)
    miss = np.abs(ds.measured_rate - ds.predicted_rate)
    assert (miss.isel(mode=[1, 2]) > 1e-3).any() or not np.isfinite(miss).all(), "the rates themselves are lost"
    assert passed(sgd_noise.judge_modes(ds))
    assert not passed(sgd_noise.judge_modes(ds.assign(predicted_rate=ds.predicted_rate * (1 + 1e-11))))


@pytest.mark.slow
def test_the_rate_of_modes_holds_among_many_seeds():
    """Of 600,000 modes some are so near to eta lambda = 1 that two steps leave a share of 1e-11 of them."""
    verified = jd.verify("cal.quadratic_rate", seeds=20000)
    assert verified.verdict == "upheld"
    assert verified.resolution["scale"]["rate"] < 1e-11
