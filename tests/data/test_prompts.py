"""Moments of the prompts' inputs, tasks and labels, and the noise on examples alone."""

import jax
import numpy as np

from jaxdyn.data import prompts

draw = jax.jit(prompts.draw, static_argnums=(1, 2))  # as one program: by itself every operation would be compiled


def test_moments(x64):
    root, task = np.asarray([[1.0, 0.5], [0.0, 2.0]]), np.asarray([[2.0, 0.0], [1.0, 1.0]])
    p = jax.device_get(draw(jax.random.key(0), 40_000, 5, root, task=task))
    x = np.asarray(p.tokens[..., :2]).reshape(-1, 2)
    np.testing.assert_allclose(x.T @ x / len(x), root @ root.T, atol=0.06)
    np.testing.assert_allclose(np.cov(p.query.T), root @ root.T, atol=0.1)
    w = np.linalg.solve(np.asarray(p.tokens[:, :2, :2]), np.asarray(p.tokens[:, :2, 2:]))[..., 0]  # labels without noise
    np.testing.assert_allclose(np.sum(w * np.asarray(p.query), -1), p.target, rtol=1e-5)
    np.testing.assert_allclose(np.cov(w.T), task @ task.T, rtol=0.05)


def test_noise_and_tails(x64):
    root = np.eye(2)
    plain, noisy, heavy = (
        jax.device_get(draw(jax.random.key(1), 20_000, 3, root, **more)) for more in ({}, {"noise": 0.5}, {"tails": 1.0})
    )
    np.testing.assert_array_equal(plain.target, noisy.target)
    np.testing.assert_allclose(np.std(noisy.tokens[..., 2] - plain.tokens[..., 2]), 0.5, rtol=0.02)
    fourth = [np.mean(p.tokens[..., 0] ** 4) for p in (plain, heavy)]
    np.testing.assert_allclose(fourth, (3.0, 6.0), rtol=0.06)
    np.testing.assert_allclose(np.mean(heavy.tokens[..., 0] ** 2), 1.0, rtol=0.03)
