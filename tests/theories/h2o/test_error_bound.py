"""The error of eviction on a few runs, once more in NumPy."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.h2o.error_bound import Eviction, trial


def test_runs():
    ds = jd.sweep(trial, jd.grid(Eviction, opposed=[0.0, 1.0]), 5)
    np.testing.assert_allclose(ds.measured_error, ds.predicted_error, rtol=1e-12)
    np.testing.assert_allclose((ds.measured_bound / ds.predicted_bound).sel(opposed=1.0), 1, rtol=1e-12)
    assert float((ds.measured_bound / ds.predicted_bound).sel(opposed=0.0).max()) < 1
    assert float(ds.assumed_lost.min()) > 0


@pytest.mark.parametrize("wrong", [{"kept": 24.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Eviction(**wrong)
