"""Cosines of streams on a few runs."""

import numpy as np

import jaxdyn as jd
from jaxdyn.theories.dejavu.cos_bound import Residual, trial


def test_runs():
    ds = jd.sweep(trial, jd.grid(Residual, ratio=[0.3, 0.9], worst=[0.0, 1.0]), 5)
    np.testing.assert_allclose(ds.measured_cosine, ds.predicted_cosine, rtol=1e-12)
    np.testing.assert_allclose(ds.measured_bound.sel(worst=1.0, ratio=0.9), np.sqrt(1 - 0.81), rtol=1e-12)
    assert float((ds.measured_bound - ds.predicted_bound).sel(worst=0.0).min()) > 0
