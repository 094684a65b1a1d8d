"""Judges of SGD on quadratics."""

import functools

import jaxdyn as jd
from jaxdyn.theories.cal.claims import noise as claims
from jaxdyn.theories.cal.trials import noise as runs
from tests.theories.cal.helpers import distorted, passed


@functools.cache
def noise_data():
    return jd.sweep(runs.noise_trial, jd.grid(runs.Noise, eta=[0.2, 0.46], steps=256, replicas=16), 32)


@functools.cache
def modes_data():
    return jd.sweep(runs.modes_trial, jd.grid(runs.Modes, eta=[0.3, 1.6], momentum=[0.0, 0.5]), 2)


def test_noise_judges():
    ds = noise_data()
    assert passed(claims.judge_variance(ds)) and passed(claims.judge_covariance(ds))
    assert not passed(claims.judge_variance(distorted(ds, "covariance")))
    assert not passed(claims.judge_variance(distorted(ds, "transient", 1.5)))
    assert not passed(claims.judge_covariance(distorted(ds, "covariance")))
    assert not passed(claims.judge_variance(ds.assign(predicted_covariance=ds.diffusion)))


def test_modes_judge():
    ds = modes_data()
    assert passed(claims.judge_modes(ds.sel(momentum=0.0)))
    assert not passed(claims.judge_modes(ds.sel(momentum=0.5)))
    for name in ("amplitude", "rate"):
        assert not passed(claims.judge_modes(distorted(ds.sel(momentum=0.0), name)))
