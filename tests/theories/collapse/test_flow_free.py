"""The flow and the descent of free features."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.collapse.flow_free import Unconstrained, trial

SMALL = {"most": 4, "width": 5, "dim": 5.0, "each": 2, "decay": 0.05, "steps": 2000.0}


@pytest.mark.slow
def test_balanced_classes_reach_the_minimum():
    ds = jd.sweep(trial, jd.grid(Unconstrained, classes=[3.0, 4.0], **SMALL), 2)
    for name in ("cosines", "gaps", "sizes", "objective"):
        np.testing.assert_allclose(
            ds[f"measured_{name}"], ds[f"predicted_{name}"].broadcast_like(ds[f"measured_{name}"]), atol=1e-3
        )
    assert float(ds.measured_within.max()) < 1e-4 < float(ds.start_within.min())
    np.testing.assert_allclose(ds.measured_gaps_descent, ds.measured_gaps, atol=1e-3)


@pytest.mark.parametrize("wrong", [{"classes": 11.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Unconstrained(**wrong)
