"""Short SGD in the full matrix: near the two equations, nearer with smaller steps; new graphs are searched."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.emer.search_sgd import SearchSgd, trial


@pytest.mark.slow
def test_sgd_and_theory():
    grid = jd.grid(SearchSgd, target="top", train=["diagonal", "full"], lr=[1.0, 0.25], renaming=[0.0, 1.0], span=10.0, fresh=16)
    ds = jd.sweep(trial, grid, 2)
    assert int(ds.status.max()) == 0
    end = ds.isel(record=-1).sel(renaming=1.0)
    np.testing.assert_allclose(end.measured_mu, end.predicted_mu, rtol=0.05)
    assert float(end.rest.sel(lr=0.25).mean()) < 0.7 * float(end.rest.sel(lr=1.0).mean())
    assert float(abs(end.measured_nu.sel(train="diagonal")).max()) < 1e-6
    assert float(ds.rest.isel(record=-1).sel(renaming=0.0).min()) > 3 * float(end.rest.max())
    assert float(end.measured_support.sel(train="diagonal").min()) == 1.0 > float(end.untrained.max())


@pytest.mark.parametrize("wrong", [{"width": 9}, {"inside": 7.0}, {"gap": 3.0}, {"lr": 50.0}])
def test_refused_settings(wrong):
    with pytest.raises(jd.UsageError, match="not allowed"):
        SearchSgd(**wrong)
