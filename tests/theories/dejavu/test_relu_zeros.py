"""Outputs by the largest units, on a few runs."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.dejavu.relu_zeros import Pruned, trial


def test_runs():
    ds = jd.sweep(trial, jd.grid(Pruned, offset=[0.0, 1.5]), 4)
    np.testing.assert_allclose(ds.measured_output.sel(offset=0.0), ds.predicted_output.sel(offset=0.0), rtol=1e-10, atol=1e-12)
    assert float(abs(ds.measured_output - ds.predicted_output).sel(offset=1.5).max()) > 0.1
    assert 16 < float(ds.active.sel(offset=0.0).mean()) < 48 < float(ds.active.sel(offset=1.5).mean())


@pytest.mark.parametrize("wrong", [{"kept": 65}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Pruned(**wrong)
