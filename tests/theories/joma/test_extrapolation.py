"""Extrapolation in the step size from three halving steps."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma.extrapolation import extrapolated, halving_steps


def values(eta):
    """A quantity with errors of first and second order in the step size."""
    eta = xr.DataArray(eta, dims="eta", coords={"eta": eta})
    return xr.Dataset({"y": 3.0 - 2.0 * eta + 5.0 * eta**2})


def test_limit_is_exact_for_a_quadratic_error():
    ds = halving_steps(values([0.01, 0.04, 0.08, 0.02]))
    np.testing.assert_array_equal(ds.eta, [0.04, 0.02, 0.01])
    assert float(extrapolated(ds.y)) == pytest.approx(3.0, abs=1e-13)


@pytest.mark.parametrize(
    ("eta", "words"), [([0.1, 0.05], "at least 3 values of eta"), ([0.1, 0.05, 0.03], "half of the one before")]
)
def test_other_step_sizes_decide_nothing(eta, words):
    with pytest.raises(jd.Inconclusive, match=words):
        halving_steps(values(eta))
