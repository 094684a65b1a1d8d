"""The contrastive loss and the probe against direct computations."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from jaxdyn.theories.hyper import model


def test_loss_against_loops():
    z = np.random.default_rng(0).normal(size=(2, 5, 3))
    z /= np.linalg.norm(z, axis=-1, keepdims=True)
    flat, total = z.reshape(10, 3), 0.0
    for i in range(10):
        others = [np.exp(flat[i] @ flat[j] / 0.3) for j in range(10) if j != i]
        total += np.log(sum(others)) - flat[i] @ flat[(i + 5) % 10] / 0.3
    np.testing.assert_allclose(jax.jit(model.nt_xent)(z.astype(np.float32), 0.3), total / 10, rtol=1e-5)


def test_encoders_share_parameters_and_masks():
    params = jax.device_get(jax.jit(lambda key: model.init(key, 6, 7, 4))(jax.random.key(1)))
    x = np.random.default_rng(2).normal(size=(9, 6)).astype(np.float32)
    encode = jax.jit(model.encode)
    linear, mlp = (np.asarray(encode(params, x, flag, 3)) for flag in (False, True))
    np.testing.assert_allclose(linear[:, :3], (x @ params.linear)[:, :3], rtol=1e-6)
    hidden = np.maximum(np.asarray(x @ params.inner + params.bias), 0)
    np.testing.assert_allclose(mlp[:, :3], (hidden @ params.outer + params.shift)[:, :3], rtol=1e-4, atol=1e-6)
    assert not linear[:, 3:].any() and not mlp[:, 3:].any()
    np.testing.assert_allclose(np.linalg.norm(jax.jit(model.on_sphere)(mlp), axis=-1), 1, rtol=1e-5)


def test_probe_is_the_minimum():
    with jax.enable_x64(True):
        z = jax.random.normal(jax.random.key(3), (200, 3), jnp.float64)
        y = z[:, 0] + 0.5 * jax.random.normal(jax.random.key(4), (200,), jnp.float64) > 0.2
        w = np.asarray(model.probe(z, y))
    x, sign = np.column_stack([z, np.ones(200)]), np.where(y, 1, -1)

    def loss(w):
        return np.mean(np.logaddexp(0, -sign * (x @ w))) + model.RIDGE / 2 * (w[:3] @ w[:3] + 1e-3 * w[3] ** 2)

    best = scipy.optimize.minimize(loss, np.zeros(4), tol=1e-12).x
    np.testing.assert_allclose(w, best, atol=1e-4)


def test_accuracy_of_a_linear_task():
    rng, accuracy = np.random.default_rng(5), jax.jit(model.accuracy)
    z = rng.normal(size=(400, 4)).astype(np.float32)
    y = (z[:, :2].sum(-1) > 0)[None]
    assert float(accuracy(z[:200], y[:, :200], z[200:], y[:, 200:])[0]) > 0.95
    noise = rng.random((1, 400)) < 0.5
    assert 0.3 < float(accuracy(z[:200], noise[:, :200], z[200:], noise[:, 200:])[0]) < 0.7
