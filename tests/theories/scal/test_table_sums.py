"""Sums of printed exponents, in plain numbers."""

import numpy as np

import jaxdyn as jd
from jaxdyn.theories.scal.table_sums import FIT, Table, outside, trial


def test_sums_and_ranges():
    ds = jd.sweep(trial, jd.grid(Table), 1).squeeze()
    np.testing.assert_allclose(ds.measured_sum, 1.0, atol=1e-12)
    np.testing.assert_allclose(ds.low, (0.989, 0.945, 0.996, 1.0), atol=1e-12)
    np.testing.assert_allclose(ds.high, (1.014, 1.063, 0.998, 1.0), atol=1e-12)
    np.testing.assert_allclose(float(outside(ds).sel(row=FIT)), 0.001, atol=1e-12)
