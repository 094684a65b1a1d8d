"""Short training of encoders."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.hyper.trials.encoders import Contrastive, trial

SMALL = {"inputs": 8, "width": 6, "dim": 6.0, "relevant": 3.0, "hidden": 16, "batch": 16, "examples": 200, "records": 2}


@pytest.mark.slow
def test_short_runs_learn_the_relevant_bits():
    ds = jd.sweep(trial, jd.grid(Contrastive, encoder=["linear", "mlp"], every=100.0, **SMALL), 2)
    assert (ds.measured_loss.isel(step=-1) < ds.measured_loss.isel(step=0)).all()
    assert float(ds.measured_accuracy.isel(step=-1).min()) > 0.9 and (ds.irrelevant <= 1).all()
    np.testing.assert_allclose(ds.measured_final, ds.measured_loss.isel(step=-1), rtol=1e-6)
    assert (ds.predicted_least < ds.predicted_final).all()


def test_outputs_that_are_masked_and_an_optimizer_that_decays():
    ds = jd.sweep(trial, jd.grid(Contrastive, dim=[1.0, 6.0], every=50.0, **{k: v for k, v in SMALL.items() if k != "dim"}), 1)
    ends = ds.measured_loss.isel(step=-1, seed=0)
    assert float(ends.sel(dim=1.0)) > float(ends.sel(dim=6.0)) + 0.1
    decay = jd.sweep(trial, jd.grid(Contrastive, optimizer="sgd", decoupled=[0.0, 5.0], every=50.0, encoder="mlp", **SMALL), 1)
    ends = decay.measured_loss.isel(step=-1, seed=0)
    assert float(ends.sel(decoupled=0.0)) != float(ends.sel(decoupled=5.0))


@pytest.mark.parametrize(
    "wrong", [{"relevant": 99.0}, {"dim": 33.0}, {"normalised": 0.5}, {"lr": 0.0}, {"coupled": -1.0}, {"batch": 1}, {"records": 0}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Contrastive(**wrong)
