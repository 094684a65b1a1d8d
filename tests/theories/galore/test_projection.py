"""Short runs of the trials on projected descent."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.galore import projection


@pytest.mark.slow
def test_fixed_and_switching_subspaces():
    ds = jd.sweep(projection.fixed_trial, jd.grid(projection.Fixed), 3)
    assert float((ds.measured_worst_ratio - ds.predicted_worst_ratio).max()) < 1e-9
    assert float(jd.relative_error(ds, "end", "row col").max()) < 1e-9
    ds = jd.sweep(projection.switching_trial, jd.grid(projection.Switching, every=[0.0, 10.0], steps=600), 3)
    assert float(ds.measured_end.sel(every=10.0).max()) < 0.5 * float(ds.measured_end.sel(every=0.0).min())
    assert set(np.ravel(ds.measured_rank.sel(every=0.0).isel(time=-1))) == {4.0}


@pytest.mark.slow
def test_inputs_of_low_rank():
    ds = jd.sweep(projection.span_trial, jd.grid(projection.Span, free=[0.0, 0.5]), 3)
    assert float(ds.beyond.sel(free=0.0).max()) < 1e-12 < float(ds.beyond.sel(free=0.5).min())
    assert set(np.ravel(ds.measured_null_dimensions)) == {40.0}


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [(projection.Fixed, {"rank": 8}), (projection.Switching, {"every": -1.0}), (projection.Span, {"span": 8})],
)
def test_wrong_settings_are_refused(setting, wrong):
    with pytest.raises(UsageError, match="not allowed"):
        setting(**wrong)
