"""Short training on recall, then all policies and budgets."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.h2o.ppl_budget.trial import BUDGETS, Recall, shares, trial

SMALL = {"length": 20, "width": 8, "hidden": 8, "fillers": 4, "keys": 2, "values": 2, "steps": 20, "records": 2, "texts": 4}


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_short_runs():
    ds = jd.sweep(trial, jd.grid(Recall, asking=[0.0, 0.25], **SMALL), 2)
    assert ds.sizes["policy"] == 9 and ds.budget.values.tolist() == list(BUDGETS) and ds.step.values.tolist() == [0, 10, 20]
    assert float(ds.curve.isel(step=-1).max()) < float(ds.curve.isel(step=0).min())
    full = ds.measured_nats.sel(policy="full")
    np.testing.assert_allclose(full, full.isel(budget=0, drop=True).broadcast_like(full), rtol=1e-5)
    np.testing.assert_allclose(full.isel(budget=-1), ds.curve.isel(step=-1), rtol=1e-4)
    whole = ds.measured_nats.isel(budget=-1)  # a cache for everything gives up nothing
    np.testing.assert_allclose(whole, whole.sel(policy="full", drop=True).broadcast_like(whole), rtol=1e-5)
    assert float(ds.measured_lost.sel(budget=0.1, policy="recent").min()) > 0.3
    assert bool((ds.measured_copy.sel(asking=0.0) == 0).all() and (ds.measured_tight.max() <= 1 + 1e-4))
    np.testing.assert_allclose(ds.uniform, sum(1 / i for i in range(1, 21)) / 20, rtol=1e-5)
    assert bool((ds.measured_top > 0.05).all() and (ds.measured_top < 1).all())


def test_shares():
    b = np.zeros((1, 1, 1, 40, 40))
    b[..., 3] = 0.75
    b[..., 7] = 0.25
    assert float(shares(b)) == 1.0


@pytest.mark.parametrize("wrong", [{"steps": 30, "records": 4}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Recall(**wrong)
