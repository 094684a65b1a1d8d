"""Lengths and opened traces of the trial."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.assort.hybrid import Hybrid, trial


@pytest.mark.slow
def test_lengths_and_traces():
    ds = jd.sweep(trial, jd.grid(Hybrid, replaced=[0.0, 5.0, 100.0], problems=3), 1)
    np.testing.assert_array_equal(ds.measured_length.isel(seed=0, problem=0), [23, 20, 8])
    np.testing.assert_array_equal(ds.measured_used.isel(seed=0, problem=0), [0, 1, 5])
    np.testing.assert_array_equal(ds.measured_trace, ds.predicted_trace)
    assert bool((ds.other.sel(replaced=100.0) != ds.predicted_trace.sel(replaced=100.0)).any())


@pytest.mark.parametrize("wrong", [{"rate": 22}, {"codes": 4}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Hybrid(**wrong)
