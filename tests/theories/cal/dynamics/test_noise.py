"""Exact statistics of SGD on a quadratic against their recursion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.cal.dynamics import noise

pytestmark = pytest.mark.usefixtures("x64")
COVARIANCE_AFTER, STATIONARY_COVARIANCE, DIFFUSION_COVARIANCE, MEAN_AFTER, DECAY_RATE = (
    jax.jit(f)
    for f in (noise.covariance_after, noise.stationary_covariance, noise.diffusion_covariance, noise.mean_after, noise.decay_rate)
)


def test_noise_statistics_follow_the_recursion():
    rng = np.random.default_rng(0)
    vectors, h, eta = np.linalg.qr(rng.normal(size=(3, 3)))[0], np.array([0.4, 1.1, 2.9]), 0.5
    mix = rng.normal(size=(3, 3))
    hessian, c = vectors @ np.diag(h) @ vectors.T, mix @ mix.T
    one, s = np.eye(3) - eta * hessian, np.zeros((3, 3))
    for n in range(1, 6):
        s = one @ s @ one + eta**2 * c
        np.testing.assert_allclose(COVARIANCE_AFTER(n, eta, h, vectors, c), s, rtol=1e-11)
    stationary = np.asarray(STATIONARY_COVARIANCE(eta, h, vectors, c))
    np.testing.assert_allclose(one @ stationary @ one + eta**2 * c, stationary, rtol=1e-11)
    equation = hessian @ stationary + stationary @ hessian - eta * hessian @ stationary @ hessian
    np.testing.assert_allclose(equation, eta * c, rtol=1e-10, atol=1e-12)
    diffusion = np.asarray(DIFFUSION_COVARIANCE(eta, h, vectors, c))
    np.testing.assert_allclose(hessian @ diffusion + diffusion @ hessian, eta * c, rtol=1e-10, atol=1e-12)


def test_stationary_variance_of_the_reference():
    one = jnp.ones((1, 1))
    assert float(STATIONARY_COVARIANCE(0.2, jnp.array([1.3]), one, 0.25 * one)[0, 0]) == pytest.approx(0.022104, abs=5e-7)


def test_means_and_rates_on_both_sides_of_the_edge():
    h, x0, eta = np.array([0.05, 1.0, 1.9, 3.1]), np.array([1.0, 2.0, -1.0, 0.5]), 0.8
    for n in (0, 1, 2, 7):
        np.testing.assert_allclose(MEAN_AFTER(n, eta, h, x0), (1 - eta * h) ** n * x0, rtol=1e-12)
    rate = np.asarray(DECAY_RATE(eta, h))
    np.testing.assert_allclose(rate, -np.log(np.abs(1 - eta * h)) / eta, rtol=1e-12)
    assert np.array_equal(rate > 0, eta * h < 2)
    assert float(DECAY_RATE(1e-9, jnp.array([2.0]))[0]) == pytest.approx(2 * (1 + 1e-9), rel=1e-12)
