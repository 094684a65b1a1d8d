"""The linear model's runs: their losses, and what the approaches make of them."""

import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.scal.trials.whitebox import BUDGETS, SIZES, STEPS, Whitebox, trial


def test_approaches_on_the_linear_model():
    ds = jd.sweep(trial, jd.grid(Whitebox, cut=[0.0, 0.005]), 1).squeeze()
    error = abs(ds.measured_exponent - ds.predicted_exponent)
    assert (error.sel(cut=0.0)[:2] < 0.01).all() and float(error.sel(cut=0.0)[2]) > 0.015
    assert (error.sel(cut=0.005)[:2] > 0.03).all()
    assert float(jd.relative_error(ds, "loss").sel(cut=0.0).max()) < 1e-12
    assert ds.sizes["budget"] == len(BUDGETS) and ds.sizes["size"] == len(SIZES) and ds.sizes["time"] == len(STEPS)
    assert (ds.start.isel(cut=0) >= ds.measured_loss.isel(cut=0)).all()


@pytest.mark.parametrize("wrong", [{"p": 0.0}, {"q": 1.0}, {"cut": 0.1}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Whitebox(**wrong)
