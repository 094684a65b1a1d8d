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


def test_directions_pass_half_of_the_gradient_and_an_eighth_of_the_noise():
    angle = np.linspace(0, 2 * np.pi, 100_000, endpoint=False)
    first, second = np.cos(angle), np.sin(angle)
    np.testing.assert_allclose([np.mean(first**2), np.mean((first * second) ** 2)], [1 / 2, 1 / 8], rtol=1e-9)
