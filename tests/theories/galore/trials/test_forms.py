"""Short runs of the trials on the form of gradients."""

import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.galore.trials import forms


def test_chains_and_logits():
    ds = jd.sweep(forms.chain_trial, jd.grid(forms.Chain, depth=2, layer=["leaky", "bias"], steps=20), 3)
    error = jd.relative_error(ds, "gradient", "row col").max(("seed", "place"))
    assert error.sel(layer="leaky") < 1e-10 < error.sel(layer="bias")
    ds = jd.sweep(forms.logits_trial, jd.grid(forms.Logits, size=1e-4, depth=2), 3)
    assert float(jd.relative_error(ds, "linear", "place row col").max()) < 1e-3


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [(forms.Chain, {"depth": 1}), (forms.Chain, {"lr": 0.0}), (forms.Logits, {"size": 0.0})],
)
def test_wrong_settings_are_refused(setting, wrong):
    with pytest.raises(UsageError, match="not allowed"):
        setting(**wrong)
