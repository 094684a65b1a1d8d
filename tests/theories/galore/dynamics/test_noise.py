"""The noise example's formulas: starts, limits and an average over directions."""

import jax.numpy as jnp
import numpy as np

from jaxdyn.theories.galore.dynamics.noise import distance_left


def test_limits(x64):
    steps = jnp.array([0, 10**7])
    np.testing.assert_allclose(distance_left("svd", steps, 1e-3, 5.0, 20, 20), [1, 0], atol=1e-9)
    floor = np.sqrt(1e-3 * 20 * 25 / 8)
    np.testing.assert_allclose(distance_left("orthonormal", steps, 1e-3, 5.0, 20, 20), [1, floor], rtol=1e-9)


def test_published_figures_are_met(x64):
    # independent runs in NumPy: .976 and .242 at eta = 1e-3 after 10 000 steps; .974 and .118 at 2e-4 after 50 000
    for eta, steps, svd, random in ((1e-3, 10_000, 0.976, 0.242), (2e-4, 50_000, 0.974, 0.118)):
        k = jnp.array([steps])
        np.testing.assert_allclose(distance_left("svd", k, eta, 5.0, 20, 20), svd, atol=0.004)
        np.testing.assert_allclose(distance_left("orthonormal", k, eta, 5.0, 20, 20), random, rtol=0.1)


def test_rows_of_noise_take_as_many_directions(x64):
    # gradient descent in NumPy, along the leading singular vectors of a gradient that is looked at every fourth step
    rng, n, rows, steps = np.random.default_rng(3), 12, 5, 400
    for rank, noisy in ((1, 2), (2, 2), (3, 2), (3, 3)):
        ends = []
        for _ in range(12):
            gap = rng.normal(size=n)
            gap /= np.linalg.norm(gap)
            for k in range(steps):
                noise = np.where(np.arange(rows - 1)[:, None] < noisy, 30.0, 0.0) * rng.normal(size=(rows - 1, n))
                gradient = np.vstack([gap, noise])
                if k % 4 == 0:
                    basis = np.linalg.svd(gradient)[0][:, :rank]
                gap = gap - 0.01 * (basis @ basis.T @ gradient)[0]
            ends.append(np.linalg.norm(gap))
        law = distance_left("svd", jnp.array([steps]), 0.01, 30.0, n, 4, rank, rows, noisy)
        np.testing.assert_allclose(np.mean(ends), law, atol=0.02)


def test_random_bases_pass_these_shares_of_gradient_and_noise(x64):
    rng, rows, rank, k = np.random.default_rng(0), 5, 3, jnp.array([0, 100, 10**7])
    q, _ = np.linalg.qr(rng.normal(size=(40_000, rows, rank)))
    p = q @ q.transpose(0, 2, 1)
    through, passed = np.mean(p[:, 0, 0]), np.mean(p[:, 0, 1] ** 2)
    kept, floor = np.exp(-2e-3 * through * np.asarray(k)), 1e-3 * 20 * 2 * 25 * passed / (2 * through)
    expected = np.sqrt(kept + floor * (1 - kept))
    np.testing.assert_allclose(distance_left("orthonormal", k, 1e-3, 5.0, 20, 20, rank, rows, 2), expected, rtol=0.01)


def test_directions_pass_half_of_the_gradient_and_an_eighth_of_the_noise():
    angle = np.linspace(0, 2 * np.pi, 100_000, endpoint=False)
    first, second = np.cos(angle), np.sin(angle)
    np.testing.assert_allclose([np.mean(first**2), np.mean((first * second) ** 2)], [1 / 2, 1 / 8], rtol=1e-9)
