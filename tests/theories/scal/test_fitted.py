"""Fits of random laws, at few sizes; judges of the fit, on made-up runs."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.scal import fitted
from jaxdyn.theories.scal.fitted import Exact, Noisy, noisy_trial, trial
from tests.theories.galore.helpers import passed, runs


@pytest.mark.slow
def test_exact_laws_are_recovered_with_strict_stops():
    ds = jd.sweep(trial, jd.grid(Exact, stops=["strict", "default"], objective=["sum", "mean"], sizes=5, starts=3), 2)
    error = abs(ds.measured_exponent - ds.predicted_exponent).max("seed")
    assert (error.sel(stops="strict") < 1e-3).all()
    assert float(error.sel(stops="default", objective="mean")) > 5e-3
    assert (ds.steps.sel(stops="default") < ds.steps.sel(stops="strict")).all()
    np.testing.assert_allclose(ds.projected.sel(stops="strict"), ds.predicted_parameters.sel(stops="strict"), rtol=1e-6)


@pytest.mark.slow
def test_intervals_grow_with_noise():
    ds = jd.sweep(noisy_trial, jd.grid(Noisy, noise=[0.001, 0.01], sizes=6, resamples=30), 4)
    width = (ds.high - ds.low).mean("seed")
    assert (ds.low <= ds.high).all() and float(width.sel(noise=0.01)) > 3 * float(width.sel(noise=0.001))
    assert float(abs(ds.measured_exponent - ds.predicted_exponent).sel(noise=0.001).max()) < 0.02


def exact(shift=0.0):
    law = np.tile([400.0, 2000.0, 1.8, 0.35, 0.37], (20, 1))
    start = np.tile([1.0, 1.0, 1.0, 0.5, 0.5], (20, 1))
    ds = {"predicted_parameters": law, "measured_parameters": law * (1 + shift), "projected": law, "start": start}
    a = np.full(20, 0.51)
    return runs(
        **{k: (("parameter",), v) for k, v in ds.items()},
        predicted_exponent=((), a),
        measured_exponent=((), a + shift),
        status=((), 0 * a),
    )


def by_stops(default, strict):
    parts = [exact(default), exact(strict)]
    return xr.concat(parts, "stops").assign_coords(stops=["default", "strict"]).transpose("stops", ...)


def test_recovery():
    assert passed(fitted.judge_recover(exact())) == [True, True, True]
    assert passed(fitted.judge_recover(exact(0.01))) == [False, False, True]
    assert passed(fitted.judge_recover(fitted.STAYS(exact()))) == [False, False, False]


def test_the_trap():
    ds = xr.concat([by_stops(0.05, 0.0)] * 3, "seed")
    assert passed(fitted.judge_trap(ds)) == [True, True]
    assert passed(fitted.judge_trap(xr.concat([by_stops(0.0, 0.05)] * 3, "seed"))) == [False, False]
    assert fitted.BIASED[fitted.STRICTLY](ds) == 1


def test_sums():
    half = exact()
    half["measured_exponent"] = half.measured_exponent + 0.01 * (np.arange(20) % 2)
    (share,) = fitted.judge_default(half)
    assert share.value == 0.5 and share.interval == jd.stats.wilson(10, 20)


def test_coverage():
    a = np.random.default_rng(0).normal(0.5, 0.01, 200)
    ds = runs(
        predicted_exponent=((), np.full(200, 0.5)),
        measured_exponent=((), a),
        low=((), a - 0.02),
        high=((), a + 0.02),
        status=((), 0 * a),
    )
    assert passed(fitted.judge_coverage(ds)) == [True, True]
    assert passed(fitted.judge_coverage(fitted.WIDE(ds))) == [True, False]
    assert fitted.NARROW[fitted.HOLD](ds) == np.mean(abs(a - 0.5) <= fitted.PUBLISHED) < 0.1
    assert jd.stats.wilson(190, 200)[0] > 0.85
