"""Moments of the prompts' inputs, tasks and labels, and the noise on examples alone."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.data import prompts


def test_moments(x64):
    root, task = jnp.asarray([[1.0, 0.5], [0.0, 2.0]]), jnp.asarray([[2.0, 0.0], [1.0, 1.0]])
    p = prompts.draw(jax.random.key(0), 40_000, 5, root, task=task)
    x = np.asarray(p.tokens[..., :2]).reshape(-1, 2)
    np.testing.assert_allclose(x.T @ x / len(x), root @ root.T, atol=0.06)
    np.testing.assert_allclose(np.cov(p.query.T), root @ root.T, atol=0.1)
    w = np.linalg.solve(np.asarray(p.tokens[:, :2, :2]), np.asarray(p.tokens[:, :2, 2:]))[..., 0]  # labels without noise
    np.testing.assert_allclose(np.sum(w * np.asarray(p.query), -1), p.target, rtol=1e-5)
    np.testing.assert_allclose(np.cov(w.T), task @ task.T, rtol=0.05)


def test_noise_and_tails(x64):
    root = jnp.eye(2, dtype=jnp.float64)
    plain, noisy, heavy = (
        prompts.draw(jax.random.key(1), 20_000, 3, root, **more) for more in ({}, {"noise": 0.5}, {"tails": 1.0})
    )
    np.testing.assert_array_equal(plain.target, noisy.target)
    np.testing.assert_allclose(np.std(noisy.tokens[..., 2] - plain.tokens[..., 2]), 0.5, rtol=0.02)
    fourth = [float(jnp.mean(p.tokens[..., 0] ** 4)) for p in (plain, heavy)]
    np.testing.assert_allclose(fourth, (3.0, 6.0), rtol=0.06)
    np.testing.assert_allclose(jnp.mean(heavy.tokens[..., 0] ** 2), 1.0, rtol=0.03)
