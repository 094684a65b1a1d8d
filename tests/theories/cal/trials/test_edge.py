"""The target, and the sharpness by power iteration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.cal import model
from jaxdyn.theories.cal.trials import edge


def test_tanh_network_and_its_sharpness(x64):
    sizes = (3, 4, 4, 1)
    params, v = (jax.jit(model.tanh_init, static_argnums=1)(jax.random.key(i), sizes) for i in (0, 2))
    x = jax.random.normal(jax.random.key(1), (6, 3), jnp.float64)
    y = edge.target(x)
    z = np.asarray(x)
    for w, b in zip(params.weights[:-1], params.biases[:-1], strict=True):
        z = np.tanh(z @ np.asarray(w).T + np.asarray(b))
    out = (z @ np.asarray(params.weights[-1]).T)[:, 0]
    np.testing.assert_allclose(jax.jit(model.tanh_apply)(params, x), out, rtol=1e-12)
    np.testing.assert_allclose(model.tanh_loss(params, x, y), 0.5 * np.mean((out - np.asarray(y)) ** 2), rtol=1e-12)

    flat, unflatten = jax.flatten_util.ravel_pytree(params)
    hessian = jax.jit(jax.hessian(lambda p: model.tanh_loss(unflatten(p), x, y)))(flat)
    _, top = jax.jit(edge._power, static_argnums=5)(params, v, x, y, 1.0, 500)
    assert float(top) == pytest.approx(float(np.linalg.eigvalsh(hessian)[-1]), rel=1e-6)


def test_missing_inputs_of_the_target_count_as_zero(x64):
    x = jnp.array([[0.3]])
    np.testing.assert_allclose(edge.target(x), 2 * (np.sin(0.6) + 1), rtol=1e-12)
