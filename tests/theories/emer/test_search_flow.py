"""The full matrix's flow on one instance of each regime: it stays on the structure and ends where the theory says."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.emer.search_flow import SearchFlow, off_structure, trial


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_flow_and_theory():
    grid = jd.grid(SearchFlow, target=["middle", "top"], train=["diagonal", "full"], density=0.2)
    ds = jd.sweep(trial, grid, 1)
    assert int(ds.status.max()) == 0 and float(ds.rest.max()) < 1e-5  # the solver's tolerance at t = 1e12
    np.testing.assert_allclose(ds.measured_mu, ds.predicted_mu, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ds.measured_nu, ds.predicted_nu, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ds.measured_rate, ds.predicted_rate, atol=1e-12)
    assert float(abs(ds.measured_nu.sel(train="diagonal")).max()) == 0
    alone = ds.sel(train="diagonal")
    middle, top = alone.sel(target="middle"), alone.sel(target="top")
    np.testing.assert_allclose(middle.measured_limit, middle.predicted_limit.sel(form="alone"), atol=1e-9)
    np.testing.assert_allclose(top.measured_slope, top.predicted_slope, rtol=1e-3)
    np.testing.assert_allclose(top.measured_late, top.predicted_late, rtol=1e-3)
    assert float(top.assumed_below_top.max()) == 0 < float(middle.assumed_below_top.min())


def test_what_is_left_of_a_matrix(x64):
    w = np.full((4, 4), 0.5) + 2.0 * np.eye(4)
    mu, nu, rest = off_structure(w)
    np.testing.assert_allclose((mu, nu, rest), (2.5, 0.5, 0), atol=1e-15)
    assert float(off_structure(w + np.diag([1.0, -1, 0, 0]))[2]) == pytest.approx((2 / 16) ** 0.5)


@pytest.mark.parametrize("wrong", [{"vertices": 8}, {"inside": 4.0}, {"gap": 3.0}, {"renaming": 0.5}])
def test_refused_settings(wrong):
    with pytest.raises(jd.UsageError, match="not allowed"):
        SearchFlow(**wrong)
