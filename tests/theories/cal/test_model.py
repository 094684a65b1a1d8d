"""Losses against NumPy."""

import jax
import numpy as np
import pytest

from jaxdyn.theories.cal import model


@pytest.mark.parametrize("offset", [0.0, 0.1])
def test_losses_against_numpy(x64, offset):
    rng = np.random.default_rng(0)
    u, d, m = rng.normal(size=(4, 2)), offset * rng.normal(size=(4, 2)), rng.normal(size=(4, 4))
    assert float(jax.jit(model.factor_loss)(u, m, d)) == pytest.approx(np.sum((m - u @ (u + d).T) ** 2) / 4)
    weights = [rng.normal(size=(3, 3)) for _ in range(3)]
    far = rng.normal(size=(3, 3)) - weights[2] @ weights[1] @ weights[0]
    m3 = far + weights[2] @ weights[1] @ weights[0]
    assert float(jax.jit(model.deep_loss)(weights, m3)) == pytest.approx(np.sum(far**2) / 2)
