"""A moment of training: the loss of a batch against plain NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import nn
from jaxdyn.instruments.moment import Batch, batch_loss, log_likelihoods

SHAPE = nn.Transformer(vocabulary=5, width=4, hidden=8)


def test_the_loss_of_a_batch_is_the_weighted_cross_entropy():
    params = nn.network(SHAPE).init(jax.random.key(0))
    rng = np.random.default_rng(0)
    tokens, targets = rng.integers(0, 5, (3, 4)), rng.integers(0, 5, (3, 4))
    weights = rng.random((3, 4))
    weights /= weights.sum()
    batch = Batch(jnp.asarray(tokens), jnp.asarray(targets), jnp.asarray(weights, jnp.float32), {})
    logits = np.asarray(nn.network(SHAPE).apply(params, jnp.asarray(tokens)), np.float64)
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    each = np.log(np.take_along_axis(shares, targets[..., None], -1)[..., 0])
    np.testing.assert_allclose(log_likelihoods(SHAPE, params, batch), each, rtol=2e-5)
    assert float(batch_loss(SHAPE, params, batch)) == pytest.approx(-(weights * each).sum(), rel=1e-5)
