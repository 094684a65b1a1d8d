"""Measures of collapse on a simplex that is written down, and on noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.collapse import measures

SIMPLEX = np.eye(4) - 1 / 4
measure = jax.jit(measures.measure)  # as one program: by itself every operation would be compiled


def test_a_collapsed_simplex():
    y, w = np.repeat(np.arange(4), 5), SIMPLEX.astype(np.float32)
    h = 3 * w[y] + 7
    m = measure(h, y, w, h @ w.T, np.ones(4, bool))
    np.testing.assert_allclose([m.low, m.high], -1 / 3, atol=1e-5)
    np.testing.assert_allclose([m.within, m.spread, m.dual], 0, atol=1e-5)
    assert m.nearest == 1


def test_noise_against_loops():
    rng = np.random.default_rng(0)
    y, h, w = np.repeat(np.arange(5), 6), rng.normal(size=(30, 7)), rng.normal(size=(5, 7))
    used = np.arange(5) < 4
    m = measure(h, y, w, h @ w.T, used)
    mu = np.array([h[y == k].mean(0) for k in range(4)])
    live = y < 4
    centred = mu - mu.mean(0)
    size = np.linalg.norm(centred, axis=1)
    inside = np.mean(((h - np.vstack([mu, mu[:1]])[y]) ** 2).sum(-1)[live])
    assert float(m.within) == pytest.approx(inside / np.mean(size**2), rel=1e-5)
    cos = (centred @ centred.T / np.outer(size, size))[~np.eye(4, dtype=bool)]
    np.testing.assert_allclose([m.low, m.high], [cos.min(), cos.max()], rtol=1e-4)
    assert float(m.spread) == pytest.approx(size.std() / size.mean(), rel=1e-4)
    v = w[:4] - w[:4].mean(0)
    dual = np.linalg.norm(centred / np.linalg.norm(centred) - v / np.linalg.norm(v))
    assert float(m.dual) == pytest.approx(dual, rel=1e-4)
    near = np.argmin(((h[:, None] - mu) ** 2).sum(-1), -1) == np.argmax((h @ w.T)[:, :4], -1)
    assert float(m.nearest) == pytest.approx(near[live].mean())


def test_means_of_classes_without_features():
    mu = measures.means(jnp.ones((3, 2)), jnp.array([0, 0, 2]), 4)
    np.testing.assert_array_equal(mu, [[1, 1], [0, 0], [1, 1], [0, 0]])
