"""The direction of descent against automatic differentiation, and far out, where the naive form cancels, against exact sums."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.theories.margin import model

direction = jax.jit(model.direction)  # as one program: by itself every operation would be compiled


def data(seed=0, n=3, t=4, d=5):
    """Random features and scores."""
    rng = np.random.default_rng(seed)
    return model.Data(jnp.asarray(rng.normal(size=(n, t, d))), jnp.asarray(rng.uniform(size=(n, t))))


def test_direction_is_that_of_the_gradient(x64):
    d, p = data(), jnp.asarray(np.random.default_rng(1).normal(size=5))
    gradient = np.asarray(jax.jit(jax.grad(model.loss))(p, d))
    np.testing.assert_allclose(direction(p, d), -gradient / np.linalg.norm(gradient), rtol=1e-10)
    np.testing.assert_allclose(jax.jit(model.step)(p, d, 0.3), p - 0.3 * gradient / np.linalg.norm(gradient), rtol=1e-10)


def test_loss_by_hand(x64):
    d = model.Data(jnp.asarray([[[1.0], [0.0]]]), jnp.asarray([[2.0, 0.0]]))
    a = 1 / (1 + np.exp(-0.5))
    np.testing.assert_allclose(jax.jit(model.loss)(jnp.asarray([0.5]), d), np.log1p(np.exp(-2 * a)), rtol=1e-12)


def test_no_cancellation_far_out(x64):
    features = [[[3, 0], [0, 1], [1, 1]], [[0, 2], [1, 0], [0, 1]]]
    d = model.Data(jnp.asarray(features, jnp.float64), jnp.asarray([[1.0, 0.25, 0.25], [1.0, 0.25, 0.25]]))
    p = jnp.asarray([60.0, 60.0])
    # two scores only: each sequence pulls along best minus other, weighted by e^{p.(other - best)}
    pull = np.array([1.0, 1.0])  # both margins are 1, so that sigma(-m) is common
    exponents = np.array([[-120.0, -60.0], [-60.0, -60.0]]) + 60.0
    differences = np.array([[[3, -1], [2, -1]], [[-1, 2], [0, 1]]], float)
    total = np.einsum("n,nt,ntd->d", pull, np.exp(exponents), differences)
    np.testing.assert_allclose(direction(p, d), total / np.linalg.norm(total), rtol=1e-12)
    assert np.linalg.norm(jax.jit(jax.grad(model.loss))(10 * p, d)) == 0.0
    np.testing.assert_allclose(np.linalg.norm(direction(10 * p, d)), 1.0, rtol=1e-12)
