"""What follows from published parameters, and the judge of it."""

import numpy as np

import jaxdyn as jd
from jaxdyn.theories.scal import rounding
from jaxdyn.theories.scal.rounding import Published, trial
from tests.theories.galore.helpers import passed


def test_exponents_by_source():
    ds = jd.sweep(trial, jd.grid(Published), 1).squeeze()
    np.testing.assert_allclose(ds.measured_exponent, (0.4565, 0.4516, 0.5126), atol=1e-4)
    assert (float(ds.low), float(ds.high)) == (0.454, 0.455) and (ds.predicted_exponent == 0.46).all()


def test_rounding():
    ds = jd.sweep(trial, jd.grid(Published), 1)
    assert passed(rounding.judge(ds)) == [True, True, True, True]
    assert rounding.SAME[rounding.ROUNDED](ds) < 0.005 and rounding.WIDE[rounding.APART](ds) < 0
    assert passed(rounding.judge(rounding.EXCHANGED(ds)))[0] is False
