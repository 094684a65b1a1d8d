"""Short training on the Bigram-Backcopy task."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.sink.trials.backcopy import Backcopy, trial

SMALL = {"vocabulary": 9, "length": 12, "width": 8, "hidden": 16, "samples": 2, "every": 10}


def test_short_runs():
    ds = jd.sweep(trial, jd.grid(Backcopy, attention=["softmax", "relu"], **SMALL), 2)
    assert float(ds.excess.isel(step=-1).max()) < float(ds.excess.isel(step=0).min())
    for name in ("copy_loss", "measured_idle", "measured_copying", "measured_share", "measured_margin", "measured_drain"):
        assert bool(np.isfinite(ds[name]).all()) and ds.sizes["step"] == 3
    soft = ds.sel(attention="softmax")
    np.testing.assert_allclose(soft.measured_share, soft.measured_idle, rtol=1e-5)
    np.testing.assert_allclose(ds.uniform, np.mean(1 / np.arange(3, 13)), rtol=1e-6)
    assert ds.steps.values.ravel().tolist()[:3] == [0, 10, 20]


@pytest.mark.parametrize("wrong", [{"lr": 0.0}, {"triggers": 16}, {"length": 3}, {"width": 0}, {"every": 0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Backcopy(**wrong)
