"""Constructed networks, what their setting refuses, and the judge on made-up runs."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.morwani.construction import Constructed, judge, trial


def test_construction_reaches_the_largest_margin_and_perturbations_lose_some():
    ds = jd.sweep(trial, jd.grid(Constructed, moduli=(5, 7), left_out=[0.0, 0.5]), seeds=2)
    whole, half = ds.sel(left_out=0.0), ds.sel(left_out=0.5)
    np.testing.assert_allclose(whole.measured_margin, whole.predicted_margin, rtol=1e-12)
    assert bool((half.measured_margin < half.predicted_margin).all())
    ratio = (whole.moved / whole.predicted_margin).transpose(..., "size")
    assert bool((ratio < 1).all()) and bool((ratio.diff("size") < 0).all())


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"moduli": (9,)}, "odd primes"), ({"moduli": ()}, "at least one")],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Constructed(**fields)


def test_judge_holds_on_lawful_data_and_rejects_others():
    best = np.broadcast_to([0.03, 0.008], (8, 2))
    arrays = {
        "predicted_margin": (("seed", "prime"), best),
        "measured_margin": (("seed", "prime"), best),
        "moved": (("seed", "prime", "size"), best[..., None] * np.array([0.99, 0.5])),
    }
    ds = xr.Dataset(arrays, {"prime": [5, 11], "size": [0.01, 0.1]})
    assert all(c.passed for c in judge(ds))
    assert not all(c.passed for c in judge(jd.scaled(predicted_margin=1 + 1e-9)(ds)))
    assert not all(c.passed for c in judge(ds.assign(moved=2 * ds.moved)))
