"""Judges of the claims on the gradient's stable rank, on made-up ranks."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.theories.joma.claims import lowrank_link as claims


def ranks(*values, seeds=40):
    """A small spread over seeds, so that intervals have a width."""
    spread = 1 + 1e-3 * np.random.default_rng(0).normal(size=(seeds, 1))
    return xr.DataArray(np.array(values) * spread, dims=("seed", "time"))


def test_falls_and_returns_are_between_an_earlier_and_a_later_value():
    rank = xr.DataArray([[2.0, 1.0, 1.5, 0.5]], dims=("seed", "time"))
    assert float(claims.fall(rank)[0]) == 4 and float(claims.returned(rank)[0]) == 1.5
    constant = xr.ones_like(rank)
    assert float(claims.fall(constant)[0]) == 1 == float(claims.returned(constant)[0])
    assert np.isnan(claims.fall(rank.where(rank > 1))).all()


@pytest.mark.parametrize(("values", "verdict"), [((2.0, 1.2, 2.2), [True, True]), ((1.0, 1.5, 2.0), [False, True]),
                                                 ((2.0, 1.5, 1.0), [False, False])])  # fmt: skip
def test_the_gradient_first_falls_and_then_returns(values, verdict):
    rank, path = ranks(*values), xr.DataArray(np.ones((40, 3, 2, 2)), dims=("seed", "time", "token", "node"))
    ds = xr.Dataset({f"{side}_{n}": x for side in ("measured", "predicted")
                     for n, x in (("srank_rate", rank), ("srank_v", rank), ("path", path))})  # fmt: skip
    found = [check.passed for check in claims.judge_link(ds)]
    assert found[:3] == [True] * 3 and found[3:] == verdict


def test_the_order_in_the_step_size_and_its_limit_are_judged():
    etas = xr.DataArray([0.1, 0.05, 0.025], dims="eta", coords={"eta": [0.1, 0.05, 0.025]})
    rank = ranks(2.0, 1.2, 2.2, 1.1)
    data = {f"{side}_{name}": rank * (1 + (0.2 * etas if side == "measured" else 0 * etas))
            for side in ("measured", "predicted") for name in ("srank_rate", "srank_v")}  # fmt: skip
    assert all(check.passed for check in claims.judge_trained(xr.Dataset(data)))
    worse = xr.Dataset(data | {"predicted_srank_rate": 1.05 * data["predicted_srank_rate"]})
    assert [check.passed for check in claims.judge_trained(worse)][:2] == [False, False]


def test_learned_attention_is_compared_with_fixed_attention():
    rank = xr.concat([ranks(1.5, 1.8, 1.0), ranks(1.5, 1.0, 1.8)], xr.DataArray([0.0, 1.0], dims="ratio", name="ratio"))
    loss = xr.DataArray([1.0, 0.5, 0.3], dims="time").broadcast_like(rank)
    ds = xr.Dataset({"measured_srank_rate": rank, "loss": loss})
    assert all(check.passed for check in claims.judge_learned(ds))
    for change in (claims.exchanged, claims.as_fixed):
        assert [check.passed for check in claims.judge_learned(change(ds))][1:] == [False, False]
