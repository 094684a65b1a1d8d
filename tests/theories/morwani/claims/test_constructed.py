"""The judge of the construction."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.morwani.claims.constructed import judge


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
