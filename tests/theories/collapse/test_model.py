"""The loss of the unconstrained-features model against loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.collapse import model


def test_loss_against_loops():
    rng = np.random.default_rng(0)
    w, h, weight = rng.normal(size=(4, 3)), rng.normal(size=(4, 2, 3)), np.array([0.5, 0.3, 0.2, 0.0])
    used = np.arange(4) < 3
    w[3] = h[3] = 0
    total = 0.05 / 2 * (w**2).sum()
    for k in range(3):
        for i in range(2):
            z = w[:3] @ h[k, i]
            ce = np.log(np.exp(z).sum()) - z[k]
            total += weight[k] / 2 * (ce + 3 * 0.05 / 2 * (h[k, i] ** 2).sum())
    with jax.enable_x64(True):
        p = model.Free(jnp.asarray(w), jnp.asarray(h))
        assert float(model.loss(p, jnp.asarray(weight), jnp.asarray(used), 0.05)) == pytest.approx(total, rel=1e-12)
        assert model.logits(p, jnp.asarray(used)).shape == (4, 2, 4)
