"""Descent on few sequences turns to the largest margin; breaches do not; a vector stays in its own entries."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.margin.select import Select, trial


def test_directions():
    ds = jd.sweep(trial, jd.grid(Select, weights=["vector", "matrix"], blended=[0.0, 1.0]), 3)
    assert int(ds.status.max()) == 0
    plain, blended = (ds.sel(blended=b) for b in (0.0, 1.0))
    inside = plain.assumed_selected == 1
    assert bool(inside.any("seed").all())
    assert float(plain.away.isel(record=-1).where(inside).max()) < 1e-3
    assert float(plain.assumed_optimality.max()) < 1e-6 < float(blended.assumed_optimality.min())
    vector = plain.sel(weights="vector").measured_direction.values.reshape(3, 6, 6)
    assert np.all(vector[:, :, 1:] == 0)
    np.testing.assert_allclose(np.linalg.norm(vector, axis=(1, 2)), 1, rtol=1e-12)


@pytest.mark.parametrize("wrong", [{"other": 0.9, "spread": 0.1}, {"reversed": 0.5}])
def test_scores_and_switches_that_are_refused(wrong):
    with pytest.raises(jd.UsageError, match="not allowed"):
        Select(**wrong)
