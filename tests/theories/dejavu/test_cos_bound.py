"""The verdict of this topic, with all controls and rivals, on a few runs.

Cosines of streams on a few runs.
"""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.dejavu import cos_bound
from jaxdyn.theories.dejavu.cos_bound import Residual, trial


def test_runs():
    ds = jd.sweep(trial, jd.grid(Residual, ratio=[0.3, 0.9], worst=[0.0, 1.0]), 5)
    np.testing.assert_allclose(ds.measured_cosine, ds.predicted_cosine, rtol=1e-12)
    np.testing.assert_allclose(ds.measured_bound.sel(worst=1.0, ratio=0.9), np.sqrt(1 - 0.81), rtol=1e-12)
    assert float((ds.measured_bound - ds.predicted_bound).sel(worst=0.0).min()) > 0


@pytest.mark.parametrize("wrong", [{"ratio": 0.0}, {"width": 1}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Residual(**wrong)


def test_verdict():
    assert [r.verdict for r in jd.verify_many(list(cos_bound.CLAIMS), seeds=16)] == ["upheld"]
