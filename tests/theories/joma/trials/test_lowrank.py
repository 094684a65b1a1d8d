"""Runs of many nodes that reach a critical point, inserted or trained."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.trials import lowrank


def test_the_flow_of_a_layer_follows_the_closed_form_if_attention_learns():
    ds = jd.sweep(lowrank.link_trial, jd.grid(lowrank.Link, attention=["exp", "none"]), 2)
    exp, none = ds.sel(attention="exp"), ds.sel(attention="none")
    assert float(jd.relative_error(exp, "path", "token node").max()) < 1e-8
    assert float(jd.relative_error(exp, "srank_rate").max()) < 1e-8
    np.testing.assert_allclose(none.measured_srank_rate, none.start_rank.broadcast_like(none.measured_srank_rate), rtol=1e-6)
    assert float(jd.relative_error(none.assign(predicted_path=none.relaxed), "path", "token node").max()) < 1e-8


@pytest.mark.slow
def test_a_trained_block_follows_its_ode_and_fixed_attention_keeps_the_rank():
    ds = jd.sweep(lowrank.trained_trial, jd.grid(lowrank.Trained, eta=0.02, span=0.4, ratio=[0.0, 1.0]), 2)
    learned, fixed = ds.sel(ratio=1.0), ds.sel(ratio=0.0)
    assert float(jd.relative_error(learned, "srank_rate", "time").max()) < 0.02
    assert float(abs(fixed.measured_srank_rate / fixed.unattended - 1).max()) < 0.01
    assert float(ds.loss.isel(time=-1).max()) < float(ds.loss.isel(time=0).min())


@pytest.mark.parametrize("wrong", [{"samples": 4}, {"low": 4.0}, {"horizon": 0.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(jd.UsageError, match="not allowed"):
        lowrank.Link(**wrong)
