"""What follows from published parameters."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.scal.trials.published import Published, trial


def test_exponents_by_source():
    ds = jd.sweep(trial, jd.grid(Published), 1).squeeze()
    np.testing.assert_allclose(ds.measured_exponent, (0.4565, 0.4516, 0.5126), atol=1e-4)
    assert (float(ds.low), float(ds.high)) == (0.454, 0.455) and (ds.predicted_exponent == 0.46).all()


def test_wrong_settings_are_refused():
    with pytest.raises(UsageError, match="not allowed"):
        Published(budget=0.0)
