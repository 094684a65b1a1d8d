"""Judges of SGD on quadratics."""

import functools

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.cal.claims import noise as claims
from jaxdyn.theories.cal.trials import noise as runs
from tests.theories.cal.helpers import distorted, passed


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
    return jd.sweep(runs.modes_trial, jd.grid(runs.Modes, eta=[0.3, 1.6], momentum=[0.0, 0.5]), 2)


def refused(checks):
    """Which checks fail for certain."""
    return {i for i, c in enumerate(checks) if c.passed is False}


def test_noise_judges():
    ds = noise_data()
    assert passed(claims.judge_variance(ds)) and passed(claims.judge_covariance(ds))
    for bad in (distorted(ds, "covariance"), ds.assign(predicted_covariance=ds.diffusion)):
        assert refused(claims.judge_variance(bad)) == {0} and refused(claims.judge_covariance(bad)) == {0, 1}
    assert refused(claims.judge_variance(distorted(ds, "transient", 1.06))) == {1}


def test_deviations_of_single_problems_are_found_where_their_mean_is_zero():
    ds = noise_data()
    sign = xr.DataArray(np.where(np.arange(32) % 2, 1, -1), dims="seed")
    off = ds.assign(measured_covariance=ds.measured_covariance + 0.05 * sign * ds.predicted_covariance)
    assert refused(claims.judge_covariance(off)) == {1}


def test_modes_judge():
    ds = modes_data()
    assert passed(claims.judge_modes(ds.sel(momentum=0.0)))
    assert not passed(claims.judge_modes(ds.sel(momentum=0.5)))
    for name in ("amplitude", "rate"):
        assert not passed(claims.judge_modes(distorted(ds.sel(momentum=0.0), name)))
