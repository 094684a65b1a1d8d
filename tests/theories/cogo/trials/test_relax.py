"""Gradient flow of narrow networks, and the settings of the trials on the flow of potentials."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.claims import relax as claims
from jaxdyn.theories.cogo.trials import relax as trials


def test_flow_of_a_narrow_network_is_not_exponential():
    ds = jd.sweep(trials.flow_trial, jd.grid(trials.Wide, width=[8.0, 16.0, 32.0], nodes=32), seeds=2)
    assert int(ds.status.max()) == 0
    assert np.allclose(claims.deviation(ds).isel(turns=0), 0, atol=1e-12)
    assert not claims.judge_relax(ds)[0].passed


@pytest.mark.parametrize(
    "fields", [{"width": 1.0}, {"width": 5000.0}, {"group": "2x2"}, {"std": 0.0}, {"tied": 2.0}, {"loss": "half"}, {"group": "x"}]
)
def test_settings_are_checked(fields):
    with pytest.raises(jd.UsageError):
        trials.Wide(**fields)
