"""Complex and residual networks against numpy, what is held at zero, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.trials import training
from jaxdyn.theories.li2.trials.variants import MOST, Variant, init, loss, predict, trial

SMALL = {"group": "5", "hidden": 6, "epochs": 4, "every": 2}
PAIRS = np.stack(np.divmod(np.arange(25), 5), -1)


def test_complex_weights_against_numpy():
    s = Variant(imaginary=1.0, **SMALL)
    p = init(s, jax.random.key(0))
    w, v = (np.asarray(x[0], complex) + 1j * np.asarray(x[1]) for x in p)
    o = ((w[PAIRS[:, 0]] + w[5 + PAIRS[:, 1]]) ** 2 @ v).real
    np.testing.assert_allclose(predict(s, p, jnp.asarray(PAIRS)), o - o.mean(1, keepdims=True), atol=1e-6)
    assert abs(float(jnp.mean(p.w[0] ** 2) / jnp.mean(p.w[1] ** 2)) - 1) < 0.6  # both parts have the same spread


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
        ({"hidden": 0}, "hidden node"),
    ):
        with pytest.raises(UsageError, match=why):
            Variant(**fields)
