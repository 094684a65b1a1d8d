"""Perceptrons with masked units, and the conditions of the data."""

import jax
import numpy as np
import pytest

from jaxdyn.theories.memo import model

init = jax.jit(model.init, static_argnums=1)  # as one program each: by itself every operation would be compiled
condition = jax.jit(model.condition, static_argnums=(3, 5))


def test_forward_against_numpy():
    params = init(jax.random.key(0), (5, 6, 6, 3))
    x = np.random.default_rng(1).normal(size=(4, 5)).astype(np.float32)
    h = x
    for w, b in params[:-1]:
        h = np.maximum(h @ np.asarray(w) + np.asarray(b), 0)
        h[:, 4:] = 0
    logits = h @ np.asarray(params[-1][0])
    np.testing.assert_allclose(jax.jit(model.apply)(params, x, 4), logits, rtol=2e-5, atol=1e-6)
    y = np.array([0, 1, 2, 0])
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(jax.jit(model.loss)(params, x, y, 4), -np.log(p[range(4), y]).mean(), rtol=1e-5)
    np.testing.assert_allclose(jax.jit(model.hits)(params, x, y, 4), (logits.argmax(-1) == np.asarray(y)).mean())


def test_start_has_he_s_variance():
    w = init(jax.random.key(2), (64, 512, 10))[0][0]
    assert float(w.var()) == pytest.approx(2 / 64, rel=0.05)  # 32768 entries: 5 standard errors are 4%


@pytest.mark.parametrize("kind", model.CONDITIONS)
def test_conditions(kind):
    x = (np.random.default_rng(3).normal(size=(300, 7)) + np.arange(7)).astype(np.float32)
    y = np.arange(300) % 10
    changed, labels = jax.device_get(condition(jax.random.key(4), x, y, kind, 0.0, 10))
    same = bool((changed == x).all())
    assert same == (kind in ("true", "random labels"))
    agree = float((labels == y).mean())
    assert agree < 0.25 if kind == "random labels" else agree == 1
    if kind.endswith("pixels"):
        np.testing.assert_allclose(np.sort(changed, -1), np.sort(x, -1))
    if kind == "shuffled pixels":
        order = np.argsort(np.asarray(changed).mean(0))
        np.testing.assert_allclose(np.asarray(changed)[:, order], np.asarray(x))


def test_a_share_of_the_labels_is_drawn_anew():
    x, y = np.zeros((4000, 2), np.float32), np.zeros(4000, np.int32)
    labels = condition(jax.random.key(5), x, y, "true", 0.5, 10)[1]
    assert np.mean(np.asarray(labels) != 0) == pytest.approx(0.45, abs=0.04)  # 5 standard errors
