"""The answering layer's matrices against the two equations, along the flow and along SGD."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.emer.direction import Reply, trial


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_flow_and_sgd_follow_the_equations():
    ds = jd.sweep(trial, jd.grid(Reply, label=["reachable", "unreachable"], inside=4.0, rate_a=[0.1, 1.0]), 2)
    assert int(ds.status.max()) == 0
    np.testing.assert_allclose(ds.measured_path, ds.predicted_path, rtol=1e-5, atol=1e-5)
    good, bad = ds.sel(label="reachable"), ds.sel(label="unreachable")
    np.testing.assert_allclose(good.measured_ratio, 2.0, rtol=1e-3)
    np.testing.assert_allclose(good.measured_late, good.predicted_late, rtol=1e-3)
    np.testing.assert_allclose(good.measured_sgd, good.predicted_sgd, rtol=0.05)
    assert float(bad.measured_late.sel(number="mu_A").max()) < -10


@pytest.mark.parametrize("wrong", [{"vertices": 9}, {"inside": 6.0}, {"lr": 7.0}])
def test_refused_settings(wrong):
    with pytest.raises(jd.UsageError, match="not allowed"):
        Reply(**wrong)
