"""Samples of the mixture of Theorem 3, and the gradient of its node against NumPy."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.dynamics.thm3 import NOISES
from jaxdyn.theories.joma.nonlinear import mixture as net
from jaxdyn.theories.joma.nonlinear import mixture_point
from tests.theories.joma.helpers import inside


@jax.jit
def sampled(s):
    """A mixture of two components over six tokens, samples of it, and the start."""
    one = net.sample_instance(jax.random.key(0), 6, 2, 1.0, 2.0)
    return one, *mixture_point.sample(jax.random.key(1), one, s, 20_000), net.start_weights(one)


def test_gradient_of_one_sample_is_the_formula(x64):
    s = inside(mixture_point.Mixture(activation="relu"))
    one, x, g, w = sampled(s)
    x, g = x[:, :20], g[:, :20]
    np.testing.assert_allclose(net.coordinates(one, w), np.append(one.v, one.xi), atol=1e-13)
    each = jax.jit(jax.vmap(jax.grad(net.utility), (None, 0, 0, None)))
    gradient = each(w, net.features(one, x[0]), g[0], s.activation)
    pre = np.asarray(x[0]) @ np.asarray(one.v) + float(one.xi)
    expected = (np.asarray(g[0]) * (pre > 0))[:, None] * np.concatenate([x[0], np.ones((20, 1))], 1)
    np.testing.assert_allclose(-net.coordinates(one, gradient), expected, atol=1e-12)


@pytest.mark.parametrize("noise", NOISES)
def test_samples_have_the_stated_moments(x64, noise):
    s = inside(mixture_point.Mixture(noise=noise, spread=0.7, anisotropy=0.5, g_slope=0.3))
    one, x, g, _ = sampled(s)
    np.testing.assert_allclose(np.mean(x, 1), one.centres, atol=0.03)
    expected = 0.49 * (1 + 0.5 * np.array([1, -1] * 3))
    np.testing.assert_allclose(np.var(x, 1), np.stack([expected] * 2), rtol=0.06)
    np.testing.assert_allclose(np.mean(g, 1), one.g, atol=0.01)
    np.testing.assert_allclose(np.std(g, 1), 0.3, rtol=0.03)


def test_every_component_needs_samples():
    with pytest.raises(jd.UsageError, match="at least 2 samples per component"):
        mixture_point.Mixture(samples=3)
