"""The constructed network against a dense triangular solve."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from jaxdyn.theories.memo.dynamics import interpolant


def drawn(n=30, d=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=d), rng.normal(size=(n, d)), rng.normal(size=n)


def test_against_a_triangular_solve():
    a, x, y = drawn()
    with jax.enable_x64(True):
        network = interpolant.construct(*(jnp.asarray(v) for v in (a, x, y)), jnp.ones(30, bool))
        values = np.asarray(interpolant.apply(network, jnp.asarray(x)))
    z = np.sort(x @ a)
    b = np.concatenate([[z[0] - 1], 0.9 * z[:-1] + 0.1 * z[1:]])
    w = scipy.linalg.solve_triangular(np.maximum(z[:, None] - b, 0), y[np.argsort(x @ a)], lower=True)
    np.testing.assert_allclose(network.b, b, rtol=1e-12)
    np.testing.assert_allclose(network.w, w, rtol=1e-6)
    np.testing.assert_allclose(values, y, atol=1e-9)
    assert interpolant.weights(30, 3) == network.w.size + network.b.size + network.a.size


def test_unused_points_and_a_unit_left_out():
    a, x, y = drawn()
    with jax.enable_x64(True):
        part = [jnp.asarray(v) for v in (a, x, y)]
        used = jnp.arange(30) < 12
        network = interpolant.construct(*part, used)
        np.testing.assert_allclose(interpolant.apply(network, part[1])[:12], y[:12], atol=1e-9)
        assert int((network.w != 0).sum()) == 12 and bool(jnp.isfinite(network.w).all())
        less = interpolant.construct(*part, used, 6)
        assert float(jnp.abs(interpolant.apply(less, part[1]) - y)[:12].max()) > 1e-3
