"""Fits of random laws, at few sizes."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.scal.trials.fitted import Exact, Noisy, noisy_trial, trial


def test_exact_laws_are_recovered_with_strict_stops():
    ds = jd.sweep(trial, jd.grid(Exact, stops=["strict", "default"], objective=["sum", "mean"], sizes=5, starts=3), 2)
    error = abs(ds.measured_exponent - ds.predicted_exponent).max("seed")
    assert (error.sel(stops="strict") < 1e-3).all()
    assert float(error.sel(stops="default", objective="mean")) > 5e-3
    assert (ds.steps.sel(stops="default") < ds.steps.sel(stops="strict")).all()
    np.testing.assert_allclose(ds.projected.sel(stops="strict"), ds.predicted_parameters.sel(stops="strict"), rtol=1e-6)


def test_other_laws_and_rounded_losses_are_not():
    ds = jd.sweep(trial, jd.grid(Exact, law=["additive", "kaplan"], digit=[0.0, 0.01], sizes=5, starts=3), 1)
    error = abs(ds.measured_parameters / ds.predicted_parameters - 1).max(["parameter", "seed"])
    assert float(error.sel(law="additive", digit=0.0)) < 1e-3 < float(error.sel(law="additive", digit=0.01))
    assert float(error.sel(law="kaplan", digit=0.0)) > 0.1


def test_intervals_grow_with_noise():
    ds = jd.sweep(noisy_trial, jd.grid(Noisy, noise=[0.001, 0.01], sizes=6, resamples=30), 4)
    width = (ds.high - ds.low).mean("seed")
    assert (ds.low <= ds.high).all() and float(width.sel(noise=0.01)) > 3 * float(width.sel(noise=0.001))
    assert float(abs(ds.measured_exponent - ds.predicted_exponent).sel(noise=0.001).max()) < 0.02


@pytest.mark.parametrize("wrong", [{"digit": -1.0}, {"sizes": 2}, {"starts": 0}])
def test_wrong_searches_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Exact(**wrong)


@pytest.mark.parametrize("wrong", [{"noise": 0.0}, {"shared": 1.5}, {"resamples": 1}, {"level": 1.0}])
def test_wrong_noise_is_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Noisy(**wrong)
