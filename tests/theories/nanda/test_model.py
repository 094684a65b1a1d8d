"""The transformer against three positions written out in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from jaxdyn.theories.nanda import model

P = 7


@pytest.fixture
def weights(x64):
    w = jax.jit(model.init, static_argnums=(1, 2, 3, 4, 5))(jax.random.key(0), P, 8, 2, 12, "float64")
    return w._replace(b_in=0.1 * jnp.arange(12.0), b_out=0.1 * jnp.arange(8.0))


def numpy_logits(w, a, b):
    """All three positions, a causal mask, loops over heads."""
    w = jax.tree.map(np.asarray, w)
    x = w.embed[[a, b, P]] + w.position
    y = x.copy()
    for h in range(w.key.shape[1]):
        q, k, v = x @ w.query[:, h], x @ w.key[:, h], x @ w.value[:, h]
        score = np.where(np.tril(np.ones((3, 3))) > 0, q @ k.T / np.sqrt(k.shape[1]), -np.inf)
        share = np.exp(score - score.max(1, keepdims=True))
        y += share / share.sum(1, keepdims=True) @ v @ w.out[h]
    y = y + np.maximum(y @ w.w_in + w.b_in, 0) @ w.w_out + w.b_out
    return (y @ w.unembed)[-1]


def test_logits_are_those_of_the_whole_transformer(weights):
    pairs = model.all_pairs(P)
    expected = [numpy_logits(weights, int(a), int(b)) for a, b in pairs]
    np.testing.assert_allclose(jax.jit(model.logits)(weights, pairs), expected, rtol=1e-11, atol=1e-12)


def test_loss_is_the_cross_entropy_and_small_ones_keep_their_digits(x64):
    z = jax.random.normal(jax.random.key(1), (5, P), jnp.float64)
    y = jnp.array([0, 3, 6, 2, 2], jnp.int32)
    expected = -scipy.special.log_softmax(z, -1)[np.arange(5), np.asarray(y)]
    loss = jax.jit(model.loss)
    np.testing.assert_allclose(loss(z, y), expected, rtol=1e-12)
    sure = jnp.zeros((1, P), jnp.float32).at[0, 2].set(30.0)
    answer = jnp.array([2], jnp.int32)
    np.testing.assert_allclose(loss(sure, answer)[0], 6 * np.exp(-30.0), rtol=1e-5)
    slope = jax.jit(jax.grad(lambda x: model.loss(x, answer)[0]))(sure)
    np.testing.assert_allclose(slope[0, 2], -6 * np.exp(-30.0), rtol=1e-5)


def test_norm_counts_every_weight(weights):
    assert float(model.norm(weights)) == pytest.approx(sum(float(np.square(x).sum()) for x in weights), rel=1e-12)
