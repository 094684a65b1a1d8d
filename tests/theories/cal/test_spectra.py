"""Random starts: their spectra, products and balance."""

import jax
import numpy as np

from jaxdyn.theories.cal.spectra import linear_start, orthonormal, spectrum


def test_values_are_drawn_apart_or_handed_in(x64):
    drawn = np.asarray(spectrum(jax.random.key(0), 4, 0.5, 2.5))
    assert np.all(np.diff(drawn) < -0.2) and 0.5 < drawn.min() and drawn.max() < 2.5
    np.testing.assert_array_equal(spectrum(jax.random.key(0), 2, 0.5, 2.5, (3.0, 1.0)), [3.0, 1.0])


def test_a_start_has_its_product_and_its_imbalance(x64):
    keys = jax.random.split(jax.random.key(1), 3)
    u, v, r = (orthonormal(k, n, 2) for k, n in zip(keys, (4, 3, 5), strict=True))
    strength = np.array([0.3, 0.1])
    w1, w2 = linear_start(strength, 0.2, u, v, r)
    np.testing.assert_allclose(w2 @ w1, (u * strength) @ v.T, atol=1e-12)
    np.testing.assert_allclose(r.T @ (w1 @ w1.T - w2.T @ w2) @ r, 0.2 * np.eye(2), atol=1e-12)
