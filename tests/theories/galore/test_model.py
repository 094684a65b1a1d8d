"""Networks and losses of GaLore's claims against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.galore import model


def plain(w, x, kind, bias):
    for i, matrix in enumerate(w):
        x = matrix @ x
        if i < len(w) - 1:
            x = x + bias[i] if kind == "bias" else x
            if kind in ("relu", "bias"):
                x = np.maximum(x, 0)
            elif kind == "leaky":
                x = np.where(x > 0, x, 0.1 * x)
            elif kind == "layernorm":
                x = (x - x.mean()) / np.sqrt(x.var() + 1e-6)
            else:
                x = len(x) * np.exp(x) / np.exp(x).sum() * x
    return x


@pytest.mark.parametrize("kind", model.LAYERS)
def test_chains_and_their_loss(kind, x64):
    rng = np.random.default_rng(0)
    w, bias = rng.normal(size=(3, 4, 4)), rng.normal(size=(3, 4))
    x, y = rng.normal(size=(2, 5, 4))
    outs = np.stack([plain(w, one, kind, bias) for one in x])
    np.testing.assert_allclose(model.chain(w, x[0], model.LAYERS.index(kind), bias), outs[0], atol=1e-12)
    loss = model.squared(w, x, y, jnp.int32(model.LAYERS.index(kind)), bias)
    np.testing.assert_allclose(loss, 0.5 * np.mean(np.sum((y - outs) ** 2, 1)), rtol=1e-12)


def test_cross_entropy_is_that_of_the_softmax(x64):
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(2, 4, 4)), rng.normal(size=(5, 4))
    labels = np.array([0, 3, 1, 1, 2])
    z = np.stack([plain(w, one, "relu", None) for one in x])
    expected = np.mean([np.log(np.exp(row).sum()) - row[i] for row, i in zip(z, labels, strict=True)])
    np.testing.assert_allclose(model.cross_entropy(w, x, np.eye(4)[labels]), expected, rtol=1e-12)


def test_the_quadratic_has_the_parametric_gradient(x64):
    rng = np.random.default_rng(0)
    a, w = rng.normal(size=(2, 3, 4))
    b, c = rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 4, 4))
    b, c = b @ b.transpose(0, 2, 1), c @ c.transpose(0, 2, 1)
    expected = a - np.mean([b[i] @ w @ c[i] for i in range(2)], 0)
    np.testing.assert_allclose(-jax.grad(model.linear_loss)(w, a, b, c), expected, atol=1e-12)


def test_all_rows_but_the_first_feel_noise_alone(x64):
    rng = np.random.default_rng(0)
    w, target, noise = rng.normal(size=(3, 5)), rng.normal(size=5), rng.normal(size=(2, 5))
    np.testing.assert_allclose(jax.grad(model.row_loss)(w, target, noise), np.stack([w[0] - target, *noise]), atol=1e-12)
