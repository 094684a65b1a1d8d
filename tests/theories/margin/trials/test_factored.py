"""Keys and queries apart turn to the least nuclear norm, more than one matrix does; the recorded numbers fit each other."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.margin.trials.factored import Factored, trial


def test_directions():
    ds = jd.sweep(trial, jd.grid(Factored, every=320), 4)
    assert int(ds.status.max()) == 0
    assert float(ds.assumed_gap.max()) < 1e-4 and float(ds.assumed_selected.min()) == 1
    np.testing.assert_allclose((ds.measured_direction**2).sum(["row", "column"]), 1, rtol=1e-12)
    cosine = (ds.measured_direction * ds.predicted_direction).sum(["row", "column"])
    assert bool((cosine.isel(record=-1) > ds.to_frobenius.isel(record=-1)).all())
    np.testing.assert_allclose(ds.singular.sum("rank"), 1, rtol=1e-12)
    values = np.linalg.svd(ds.measured_direction.isel(record=-1).transpose("seed", "row", "column"), compute_uv=False)
    np.testing.assert_allclose(ds.singular.transpose("seed", "rank"), values / values.sum(-1, keepdims=True), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("wrong", [{"lr": 0.0}, {"size": 0.0}, {"other": 0.9, "spread": 0.1}, {"shown": 2}, {"records": 2}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Factored(**wrong)
