"""Losses of the published table: closed forms in scipy."""

import numpy as np
import scipy.special

import jaxdyn as jd
from jaxdyn.theories.hyper.table_losses import Constants, trial


def loss(moment):
    return np.log(1022 * moment + np.exp(2)) - 2


def test_losses_are_the_closed_forms():
    ds = jd.sweep(trial, jd.grid(Constants), 1).squeeze()
    words = 1024
    simplex = (np.exp(2) + (words - 1) * np.exp(-2 / (words - 1))) / words
    sphere = scipy.special.gamma(10) * scipy.special.iv(9, 2.0)  # (2T)^(d/2-1) is 1
    for name, moment in (("linear", np.cosh(0.2) ** 10), ("codes", simplex), ("mlp", sphere)):
        np.testing.assert_allclose(float(ds[f"predicted_{name}"]), loss(moment), rtol=1e-9)
    assert (float(ds.measured_linear), float(ds.measured_codes), float(ds.useless)) == (5.134, 4.939, 4.939)
    assert (float(ds.measured_mlp), float(ds.decayed)) == (5.039, 5.040)
