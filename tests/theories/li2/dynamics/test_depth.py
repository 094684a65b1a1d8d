"""The signal through one more layer against the mean over angles."""

import jax
import numpy as np

from jaxdyn.theories.li2.dynamics import depth


def test_what_a_wide_upper_layer_sends_down_is_the_mean_over_its_nodes(x64):
    """In two dimensions the mean over a Gaussian node is twice that over its angle."""
    rng = np.random.default_rng(8)
    f, half = rng.normal(size=(5, 2)), rng.normal(size=(5, 5))
    signal = half + half.T
    angle = (np.arange(400_000) + 0.5) * 2 * np.pi / 400_000
    w = np.stack([np.cos(angle), np.sin(angle)])
    a = f @ w
    expected = 2 * ((signal @ np.maximum(a, 0)) * (a > 0)) @ w.T / len(angle)
    np.testing.assert_allclose(jax.jit(depth.received)(f, signal), expected, atol=3e-5)
    assert np.abs(depth.masked(f, signal) - expected).max() > 0.05
