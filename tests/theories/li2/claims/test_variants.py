"""Judges of the variants on times made up, true and false."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.theories.li2.claims import variants


def data(field, times, seeds=8):
    """Runs with times by the values 0 and 1 of a field and one of share or top; a little noise."""
    second = {"imaginary": ("share", [0.7, 0.9]), "blocks": ("top", [0.0, 1.0])}[field]
    rng = np.random.default_rng(0)
    time = np.asarray(times, float)[:, :, None] * (1 + 0.005 * rng.normal(size=(2, 2, seeds)))
    axes = (field, second[0], "seed")
    flat = xr.DataArray(np.ones((*time.shape, 3)), dims=(*axes, "epoch"))
    ds = xr.Dataset({"measured_time": (axes, time), "test_accuracy": flat, "train_accuracy": flat})
    return ds.assign_coords({field: [0.0, 1.0], second[0]: second[1], "seed": range(seeds), "epoch": [0, 300, 600]})


def passed(checks):
    return [c.passed for c in checks if not c.gate]


def test_complex_weights_are_faster_where_pairs_are_scarce():
    ds = data("imaginary", [[300, 50], [150, 50]])
    assert passed(variants.judge_complex(ds)) == [True, True]
    assert passed(variants.judge_complex(variants.exchanged("imaginary")(ds))) == [False, False]
    assert passed(variants.judge_complex(variants.same("imaginary", 0.0)(ds))) == [False, False]
    assert passed(variants.judge_complex(data("imaginary", [[300, 300], [150, 150]]))) == [True, False]


def test_a_block_delays():
    ds = data("blocks", [[50, 80], [1200, 1200]])
    assert passed(variants.judge_delay(ds)) == [True]
    assert passed(variants.judge_delay(data("blocks", [[50, 80], [90, 120]]))) == [False]


def test_zero_start():
    ds = data("blocks", [[50, 80], [1200, 1200]])
    low = ds.test_accuracy.where((ds.blocks == 0) | (ds.top == 0), 0.2)
    assert passed(variants.judge_start(ds.assign(test_accuracy=low))) == [True, True]
    assert passed(variants.judge_start(variants.same("top", 1.0)(ds.assign(test_accuracy=low)))) == [False, False]
    assert passed(variants.judge_start(variants.exchanged("top")(ds.assign(test_accuracy=low)))) == [False, False]


def test_purity():
    ds = data("blocks", [[50, 80], [1200, 1200]])
    ds = ds.assign(measured_purity=ds.measured_time * 0 + 0.4, random_purity=ds.measured_time * 0 + 0.2)
    noise = 1 + 0.01 * np.random.default_rng(1).normal(size=ds.measured_purity.shape)
    ds = ds.assign(measured_purity=ds.measured_purity * noise)
    assert passed(variants.judge_purity(ds)) == [True, True]
    assert passed(variants.judge_purity(variants.still(ds))) == [False, False]
    assert passed(variants.judge_purity(variants.even(ds))) == [False, False]


@pytest.mark.parametrize("claim", variants.CLAIMS, ids=lambda c: c.id)
def test_claims_have_opponents(claim):
    assert claim.controls and claim.rivals and claim.evidence == "network"
