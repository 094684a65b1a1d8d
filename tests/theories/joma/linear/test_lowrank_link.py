"""Runs of many nodes that reach a critical point, inserted or trained; judges of the gradient's stable rank on made-up ranks."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma.linear import lowrank_link


def test_the_flow_of_a_layer_follows_the_closed_form_if_attention_learns():
    ds = jd.sweep(lowrank_link.link_trial, jd.grid(lowrank_link.Link, attention=["exp", "none"]), 2)
    exp, none = ds.sel(attention="exp"), ds.sel(attention="none")
    assert float(jd.relative_error(exp, "path", "token node").max()) < 1e-8
    assert float(jd.relative_error(exp, "srank_rate").max()) < 1e-8
    np.testing.assert_allclose(none.measured_srank_rate, none.start_rank.broadcast_like(none.measured_srank_rate), rtol=1e-6)
    assert float(jd.relative_error(none.assign(predicted_path=none.relaxed), "path", "token node").max()) < 1e-8


@pytest.mark.slow
def test_a_trained_block_follows_its_ode_and_fixed_attention_keeps_the_rank():
    ds = jd.sweep(lowrank_link.trained_trial, jd.grid(lowrank_link.Trained, eta=0.02, span=0.4, ratio=[0.0, 1.0]), 2)
    learned, fixed = ds.sel(ratio=1.0), ds.sel(ratio=0.0)
    assert float(jd.relative_error(learned, "srank_rate", "time").max()) < 0.02
    assert float(abs(fixed.measured_srank_rate / fixed.unattended - 1).max()) < 0.01
    assert float(ds.loss.isel(time=-1).max()) < float(ds.loss.isel(time=0).min())


@pytest.mark.parametrize(
    ("wrong", "words"), [({"samples": 4}, "at least as many samples as tokens"), ({"low": 4.0}, "low is at most high")]
)
def test_wrong_settings_are_refused(wrong, words):
    with pytest.raises(jd.UsageError, match=words):
        lowrank_link.Link(**wrong)


def ranks(*values, seeds=40):
    """A small spread over seeds, so that intervals have a width."""
    spread = 1 + 1e-3 * np.random.default_rng(0).normal(size=(seeds, 1))
    return xr.DataArray(np.array(values) * spread, dims=("seed", "time"))


def test_falls_and_returns_are_between_an_earlier_and_a_later_value():
    rank = xr.DataArray([[2.0, 1.0, 1.5, 0.5]], dims=("seed", "time"))
    assert float(lowrank_link.fall(rank)[0]) == 4 and float(lowrank_link.returned(rank)[0]) == 1.5
    constant = xr.ones_like(rank)
    assert float(lowrank_link.fall(constant)[0]) == 1 == float(lowrank_link.returned(constant)[0])
    assert np.isnan(lowrank_link.fall(rank.where(rank > 1))).all()


@pytest.mark.parametrize(("values", "verdict"), [((2.0, 1.2, 2.2), [True, True]), ((1.0, 1.5, 2.0), [False, True]),
                                                 ((2.0, 1.5, 1.0), [False, False])])  # fmt: skip
def test_the_gradient_first_falls_and_then_returns(values, verdict):
    rank, path = ranks(*values), xr.DataArray(np.ones((40, 3, 2, 2)), dims=("seed", "time", "token", "node"))
    ds = xr.Dataset({f"{side}_{n}": x for side in ("measured", "predicted")
                     for n, x in (("srank_rate", rank), ("srank_v", rank), ("path", path))})  # fmt: skip
    found = [check.passed for check in lowrank_link.judge_link(ds)]
    assert found[:3] == [True] * 3 and found[3:] == verdict


def test_the_order_in_the_step_size_and_its_limit_are_judged():
    etas = xr.DataArray([0.1, 0.05, 0.025], dims="eta", coords={"eta": [0.1, 0.05, 0.025]})
    rank = ranks(2.0, 1.2, 2.2, 1.1)
    data = {f"{side}_{name}": rank * (1 + (0.2 * etas if side == "measured" else 0 * etas))
            for side in ("measured", "predicted") for name in ("srank_rate", "srank_v")}  # fmt: skip
    assert all(check.passed for check in lowrank_link.judge_trained(xr.Dataset(data)))
    worse = xr.Dataset(data | {"predicted_srank_rate": 1.05 * data["predicted_srank_rate"]})
    assert [check.passed for check in lowrank_link.judge_trained(worse)][:2] == [False, False]


def test_learned_attention_is_compared_with_fixed_attention():
    rank = xr.concat([ranks(1.5, 1.8, 1.0), ranks(1.5, 1.0, 1.8)], xr.DataArray([0.0, 1.0], dims="ratio", name="ratio"))
    loss = xr.DataArray([1.0, 0.5, 0.3], dims="time").broadcast_like(rank)
    ds = xr.Dataset({"measured_srank_rate": rank, "loss": loss})
    assert all(check.passed for check in lowrank_link.judge_learned(ds))
    for change in (lowrank_link.EXCHANGED, lowrank_link.AS_FIXED):
        assert [check.passed for check in lowrank_link.judge_learned(change(ds))][1:] == [False, False]
