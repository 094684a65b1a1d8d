"""Closed forms of StableMax against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.prieto.dynamics import scale


@pytest.mark.parametrize("stable", [False, True])
def test_derivatives_and_scale_are_finite_differences(x64, stable):
    z = np.asarray(2 * jax.random.normal(jax.random.key(3), (6, 4), jnp.float64))
    answers = np.array([0, 1, 2, 3, 1, 0])
    each = np.asarray(scale.derivative(jnp.asarray(z), jnp.asarray(answers), stable))

    def loss(x):
        return -np.log(np.asarray(scale.probabilities(jnp.asarray(x), stable))[np.arange(6), answers])

    np.testing.assert_allclose(np.asarray(scale.probabilities(jnp.asarray(z), stable)).sum(1), 1, rtol=1e-12)
    for c in range(4):
        step = np.zeros((1, 4))
        step[0, c] = 1e-6
        np.testing.assert_allclose((loss(z + step) - loss(z - step)) / 2e-6, each[:, c], atol=1e-8)
    along = (loss(z * (1 + 1e-6)) - loss(z * (1 - 1e-6))).mean() / 2e-6
    assert float(scale.along_weights(jnp.asarray(z), jnp.asarray(answers), stable)) == pytest.approx(along, abs=1e-8)
