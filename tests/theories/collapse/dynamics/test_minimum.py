"""The closed form against a search over all weights."""

import jax
import numpy as np
import pytest
import scipy.optimize

from jaxdyn.theories.collapse.dynamics import minimum


@pytest.mark.parametrize(("classes", "decay"), [(3, 0.05), (5, 0.1), (4, 0.3)])
def test_against_descent(classes, decay):
    def loss(flat):
        w, h = flat.reshape(2, classes, classes)
        z = h @ w.T
        ce = np.mean(np.log(np.exp(z).sum(-1)) - np.diag(z))
        return ce + decay / 2 * (w**2).sum() + decay / 2 * (h**2).sum()

    start = np.random.default_rng(0).normal(size=2 * classes**2)
    best = scipy.optimize.minimize(loss, start, tol=1e-12)
    with jax.enable_x64(True):
        least, gap, size = (float(f(classes, decay)) for f in (minimum.least, minimum.gap, minimum.size))
        cosine = float(minimum.cosine(classes))
    assert best.fun == pytest.approx(least, abs=1e-8)
    w, h = best.x.reshape(2, classes, classes)
    z = h @ w.T
    np.testing.assert_allclose((np.diag(z)[:, None] - z)[~np.eye(classes, dtype=bool)], gap, atol=1e-3)
    np.testing.assert_allclose((h**2).sum(-1), size, atol=1e-3)
    if size > 0:
        cos = (h @ h.T / size)[~np.eye(classes, dtype=bool)]
        np.testing.assert_allclose(cos, cosine, atol=1e-3)
    else:
        assert decay > 1 / classes
