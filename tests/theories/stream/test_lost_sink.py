"""Weights before and after a key has left, on a few runs."""

import numpy as np

import jaxdyn as jd
from jaxdyn.theories.stream.lost_sink import Lost, trial


def test_growth():
    ds = jd.sweep(trial, jd.grid(Lost, mass=[0.5, 0.9], attention=["softmax", "zero_sink"]), 3)
    soft, sink = (ds.measured_weights.sel(attention=name) for name in ("softmax", "zero_sink"))
    np.testing.assert_allclose(soft.sel(mass=0.9), 10, rtol=1e-12)
    assert float(sink.sel(mass=0.9).max()) < 10
