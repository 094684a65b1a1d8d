"""The trial of the constructed network."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.memo.finite_sample import Points, trial


def test_residuals_and_counts():
    ds = jd.sweep(trial, jd.grid(Points, points=[10.0, 60.0], less=[0.0, 1.0], most=64), 2)
    exact = ds.sel(less=0.0)
    assert float(exact.residual.max()) < 1e-7 and float(ds.residual.sel(less=1.0).min()) > 1e-4
    np.testing.assert_array_equal(exact.measured_weights, exact.predicted_weights)
    assert exact.measured_weights.sel(points=60.0).values.ravel()[0] == 130
    equal = jd.sweep(trial, jd.grid(Points, points=20.0, equal=1.0, most=64), 2)
    assert float(equal.residual.min()) > 1e-3


@pytest.mark.parametrize("wrong", [{"points": 501.0}, {"less": 2.0}, {"equal": 0.5}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Points(**wrong)
