"""Descent on quadratics: recursions that every mode must follow, and how noise scales."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cal.trials import noise


def test_modes_follow_the_recursion_of_heavy_ball():
    """x_{n+1} = (1 + mu - eta h) x_n - mu x_{n-1}, from curvatures and amplitudes alone; without momentum as predicted."""
    grid = jd.grid(noise.Modes, eta=[0.3, 1.1], momentum=[0.0, 0.5], size=3, steps=8)
    ds = jd.sweep(noise.modes_trial, grid, 2)
    x, factor = ds.measured_amplitude, 1 + ds.momentum - ds.eta * ds.curvature
    before, now, after = (x.isel(step=slice(i, i + 6)).drop_vars("step") for i in range(3))
    np.testing.assert_allclose(after, (factor * now - ds.momentum * before).transpose(*after.dims), atol=1e-12)
    plain = ds.sel(momentum=0.0)
    np.testing.assert_allclose(plain.measured_amplitude, plain.predicted_amplitude, rtol=1e-9, atol=1e-14)
    starts = plain.measured_amplitude.isel(step=0) / (1 - plain.eta * plain.curvature)
    np.testing.assert_allclose(starts.isel(eta=0), starts.isel(eta=1), rtol=1e-9, err_msg="both rates start at the same point")


def test_covariances_scale_with_the_squared_noise_on_the_same_draws():
    grid = jd.grid(noise.Noise, sigma=[0.5, 1.0], problem=["scalar", "matrix"], size=2, replicas=4, starts=4, burn_in=4, steps=40)
    ds = jd.sweep(noise.noise_trial, grid, 2)
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
    mean, error = noise._statistics(x, 7)
    np.testing.assert_allclose(mean, x.mean(0), rtol=1e-12)
    np.testing.assert_allclose(error, x.std(0, ddof=1) / 7**0.5, rtol=1e-12)


@pytest.mark.parametrize(
    ("cls", "fields"),
    [(noise.Modes, {"eta": 0.0}), (noise.Modes, {"steps": 0}), (noise.Noise, {"replicas": 1}), (noise.Noise, {"starts": 0})],
)
def test_settings_are_checked(cls, fields):
    with pytest.raises(jd.UsageError, match=next(iter(fields))):
        cls(**fields)
