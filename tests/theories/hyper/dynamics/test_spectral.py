"""The minimum against a search over random matrices' descent, the logistic against its equation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from jaxdyn.theories.hyper.dynamics import spectral


@pytest.mark.parametrize(("encoder", "least"), [(2, -2.0), (4, -3 - 0.75**2), (8, -3 - 3 * 0.75**2)])
def test_minimum_against_descent(encoder, least):
    with jax.enable_x64(True):
        plus, both = (np.asarray(x) for x in spectral.correlations(6, 3, 0.5, 1 / 3))
        assert float(spectral.minimum(6, 3.0, encoder, 0.5, 1 / 3)) == pytest.approx(least, abs=1e-12)

    def loss(flat):
        w = flat.reshape(encoder, 6)
        return -2 * np.sum(w * w * plus) + np.sum(((w * both) @ w.T) ** 2)

    start = np.random.default_rng(0).normal(size=encoder * 6)
    assert scipy.optimize.minimize(loss, start, tol=1e-12).fun == pytest.approx(least, abs=1e-6)


def test_logistic_obeys_its_equation():
    with jax.enable_x64(True):
        plus, both, start = jnp.array([1.0, 0.25]), jnp.array([1.0, 1 / 3]), jnp.array([0.01, 0.02])
        ts = jnp.linspace(0.0, 2.0, 2001)
        p = np.asarray(spectral.logistic(start, plus, both, ts))
        slope = 8 * (plus * p - both**2 * p**2)
    np.testing.assert_allclose(p[0], start)
    np.testing.assert_allclose((p[2:] - p[:-2]) / 2e-3, slope[1:-1], atol=3e-4)  # third derivative times h^2/6
