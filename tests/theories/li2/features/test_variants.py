"""Complex and residual networks against NumPy, what stays at zero, what is refused, and judges on made-up times."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.li2 import model, training
from jaxdyn.theories.li2.features import variants
from jaxdyn.theories.li2.features.variants import MOST, Variant, init, loss, predict, trial
from tests.theories.li2.helpers import refuses_opponents

SMALL = {"group": "5", "hidden": 6, "epochs": 4, "every": 2}
PAIRS = np.stack(np.divmod(np.arange(25), 5), -1)


@pytest.mark.slow
def test_complex_weights_against_numpy():
    s = Variant(imaginary=1.0, **SMALL)
    p = init(s, jax.random.key(0))
    w, v = (np.asarray(x[0], complex) + 1j * np.asarray(x[1]) for x in p)
    o = ((w[PAIRS[:, 0]] + w[5 + PAIRS[:, 1]]) ** 2 @ v).real
    np.testing.assert_allclose(predict(s, p, jnp.asarray(PAIRS)), o - o.mean(1, keepdims=True), atol=1e-6)
    assert abs(float(jnp.mean(p.w[0] ** 2) / jnp.mean(p.w[1] ** 2)) - 1) < 0.6  # both parts have the same spread


@pytest.mark.slow
def test_real_weights_are_the_model_s():
    s = Variant(imaginary=0.0, **SMALL)
    p = init(s, jax.random.key(0))
    assert not p.w[1].any() and not p.v[1].any()
    o = model.predict(model.Params(p.w[0], p.v[0]), jnp.asarray(PAIRS))
    np.testing.assert_allclose(predict(s, p, jnp.asarray(PAIRS)), o - o.mean(1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("blocks", range(MOST + 1))
def test_residual_blocks_against_numpy(blocks):
    s = Variant(kind="residual", blocks=float(blocks), **SMALL)
    p = init(s, jax.random.key(1))
    w, layers, v = (np.asarray(x) for x in p)
    x = np.maximum(w[PAIRS[:, 0]] + w[5 + PAIRS[:, 1]], 0)
    for layer in layers[:blocks]:
        x = np.maximum(x + x @ layer, 0)
    o = x @ v
    np.testing.assert_allclose(predict(s, p, jnp.asarray(PAIRS)), o - o.mean(1, keepdims=True), atol=1e-6)


@pytest.mark.slow
def test_the_loss_is_that_of_the_pairs_trained_on():
    s = Variant(share=0.6, **SMALL)
    p, d = init(s, jax.random.key(2)), training.data(s, jax.random.key(3))
    known = np.asarray(d.samples).reshape(-1, 2)[:15]
    o = np.asarray(predict(s, p, jnp.asarray(known)))
    aim = np.eye(5)[(known.sum(1)) % 5] - 0.2
    assert float(loss(s, p, d)) == pytest.approx(((o - aim) ** 2).sum(1).mean(), rel=1e-5)


@pytest.mark.slow
def test_short_runs_of_both_kinds():
    ds = jd.sweep(trial, jd.grid(Variant, imaginary=[0.0, 1.0], **SMALL), 2)
    assert set(ds.measured_time.values.ravel()) <= {0, 2, 4, 8} and ds.sizes["epoch"] == 3
    assert float(ds.measured_purity.min()) > 0.2
    deep = jd.sweep(trial, jd.grid(Variant, kind="residual", blocks=[0.0, 2.0], lr=0.05, **(SMALL | {"epochs": 40})), 1)
    assert float(deep.train_accuracy[..., -1].min()) > float(deep.train_accuracy[..., 0].max())


def test_settings_that_are_refused():
    for fields, why in (
        ({"share": 1.0}, "pair to train on"),
        ({"epochs": 7}, "multiple of every"),
        ({"imaginary": 0.5}, "0 or 1"),
        ({"blocks": 3.0}, "whole number"),
    ):
        with pytest.raises(UsageError, match=why):
            Variant(**fields)


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
    assert passed(variants.judge_complex(data("imaginary", [[300, 300], [150, 150]]))) == [True, False]


def test_a_block_delays():
    ds = data("blocks", [[50, 80], [1200, 1200]])
    assert passed(variants.judge_delay(ds)) == [True]
    assert passed(variants.judge_delay(data("blocks", [[50, 80], [90, 120]]))) == [False]


def test_zero_start():
    ds = data("blocks", [[50, 80], [1200, 1200]])
    assert passed(variants.judge_start(ds)) == passed(variants.judge_start(ds.sel(blocks=[0.0]))) == [True]
    assert passed(variants.judge_start(variants.exchanged("top")(ds))) == [False]
    late = data("blocks", [[700, 1200], [400, 1200]])
    assert passed(variants.judge_start(late)) == [False], "who does not get there counts with 600 epochs"


def test_purity():
    ds = data("blocks", [[50, 80], [1200, 1200]])
    ds = ds.assign(measured_purity=ds.measured_time * 0 + 0.4, random_purity=ds.measured_time * 0 + 0.2)
    noise = 1 + 0.01 * np.random.default_rng(1).normal(size=ds.measured_purity.shape)
    ds = ds.assign(measured_purity=ds.measured_purity * noise)
    assert passed(variants.judge_purity(ds)) == [True, True]
    assert variants.at_start(ds) == pytest.approx(0.2)
    assert passed(variants.judge_purity(jd.swap(measured_purity=1 / 11)(ds))) == [False, False]


@pytest.mark.parametrize("claim", variants.CLAIMS, ids=lambda c: c.id)
def test_claims_have_opponents(claim):
    assert claim.controls and claim.rivals and claim.evidence == "network"
    if claim.id == "li2.complex_faster":
        refuses_opponents(claim, data("imaginary", [[300, 50], [150, 50]]))
    else:
        ds = data("blocks", [[50, 80], [400, 1200]], 16)
        noise = 1 + 0.01 * np.random.default_rng(1).normal(size=ds.measured_time.shape)
        refuses_opponents(
            claim, ds.assign(measured_purity=0 * ds.measured_time + 0.4 * noise, random_purity=0 * ds.measured_time + 0.2)
        )
