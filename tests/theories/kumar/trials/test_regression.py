"""Networks trained on a square, and what their setting refuses."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.kumar.trials.regression import Regression, trial


def test_large_scales_are_kernel_regression_and_small_ones_learn_features():
    fields = {"dimension": 5, "nodes": 16, "samples": 14, "tests": 60, "every": 5, "centred": 1.0}
    ds = jd.sweep(trial, jd.grid(Regression, alpha=[0.5, 1e3], **fields), seeds=2)
    lazy, rich = (ds.sel(alpha=a) for a in (1e3, 0.5))
    np.testing.assert_allclose(lazy.measured_test, lazy.predicted_test, rtol=0.02)
    np.testing.assert_allclose(lazy.measured_movement, lazy.predicted_movement, rtol=0.02)
    assert float(lazy.kernel_change.max()) < 0.02 < 0.2 < float(rich.kernel_change.min())
    assert bool((rich.fit_end < 0.1).all()) and bool((ds.fitted <= ds["at"].isel(record=-1)).all())
    np.testing.assert_allclose(ds.measured_delay, ds.general - ds.fitted)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"samples": 0}, "at least 1"),
        ({"every": 0}, "at least 1"),
        ({"alpha": 0.0}, "positive"),
        ({"centred": 2.0}, "from 0 to 1"),
    ],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Regression(**fields)
