"""Judges of the parametric fit, on made-up runs."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.scal.claims import fitted
from tests.theories.galore.helpers import passed, runs


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
    assert passed(fitted.judge_recover(fitted.stays(exact()))) == [False, False, False]


def test_the_trap():
    ds = by_stops(0.05, 0.0)
    assert passed(fitted.judge_trap(ds)) == [True, True]
    assert passed(fitted.judge_trap(fitted.alike(ds))) == [False, True]
    assert passed(fitted.judge_trap(fitted.biased(ds))) == [True, False]


def test_sums():
    half = exact()
    half["measured_exponent"] = half.measured_exponent + 0.01 * (np.arange(20) % 2)
    assert passed(fitted.judge_default(half)) == [True]
    assert passed(fitted.judge_default(fitted.settled(half))) == [False]


def test_coverage():
    a = np.random.default_rng(0).normal(0.5, 0.01, 200)
    ds = runs(
        predicted_exponent=((), np.full(200, 0.5)),
        measured_exponent=((), a),
        low=((), a - 0.02),
        high=((), a + 0.02),
        status=((), 0 * a),
    )
    assert passed(fitted.judge_coverage(ds)) == [True]
    assert passed(fitted.judge_coverage(fitted.narrow(ds))) == [False]
    assert jd.stats.wilson(190, 200)[0] > 0.85
