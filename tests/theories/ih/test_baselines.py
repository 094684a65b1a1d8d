"""The claims come out as expected, with all their controls and rivals.

Losses of the predictors on few sequences, and sticky chains, which are easier.
"""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.ih import baselines
from jaxdyn.theories.ih.baselines import Baselines, trial


def test_losses():
    ds = jd.sweep(trial, jd.grid(Baselines, sticky=[0.0, 1.0], count=400), 1).isel(seed=0)
    plain, sticky = ds.sel(sticky=0.0), ds.sel(sticky=1.0)
    np.testing.assert_allclose(plain.measured_loss, plain.predicted_loss, atol=0.04)
    assert np.all(np.diff(plain.measured_loss) < 0)
    assert float(sticky.measured_loss.sel(predictor="chain")) < float(plain.measured_loss.sel(predictor="chain")) - 0.1
    np.testing.assert_allclose(plain.predicted_entropy, 1 / 2 + 1 / 3)


@pytest.mark.parametrize("wrong", [{"tokens": 4}, {"sticky": -1.0}, {"length": 1}, {"count": 1}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Baselines(**wrong)


@pytest.mark.slow  # a verification judges the same runs
def test_verdicts():
    results = jd.verify_many(list(baselines.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in baselines.CLAIMS}
