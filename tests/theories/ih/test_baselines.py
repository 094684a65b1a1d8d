"""Losses of the predictors on few sequences, and sticky chains, which are easier."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.ih.baselines import Baselines, trial


def test_losses():
    ds = jd.sweep(trial, jd.grid(Baselines, sticky=[0.0, 1.0], count=400), 1).isel(seed=0)
    plain, sticky = ds.sel(sticky=0.0), ds.sel(sticky=1.0)
    np.testing.assert_allclose(plain.measured_loss, plain.predicted_loss, atol=0.04)
    assert np.all(np.diff(plain.measured_loss) < 0)
    assert float(sticky.measured_loss.sel(predictor="chain")) < float(plain.measured_loss.sel(predictor="chain")) - 0.1
    np.testing.assert_allclose(plain.predicted_entropy, 1 / 2 + 1 / 3)


def test_the_table_has_two_numbers_of_states():
    with pytest.raises(jd.UsageError, match="tokens=4 is not allowed: tokens is one of 2, 3"):
        Baselines(tokens=4)
