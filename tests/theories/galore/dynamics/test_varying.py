"""Bounds with changing coefficients, and where descent ends if inputs lack dimensions."""

import jax.numpy as jnp
import numpy as np

from jaxdyn.theories.galore.dynamics import varying


def test_factors_by_hand(x64):
    found = varying.factors(
        jnp.float64(0.1), jnp.array([2.0, 3.0]), (jnp.float64(0.5), jnp.float64(2), jnp.float64(3)), jnp.float64(2)
    )
    np.testing.assert_allclose(found, [1 - 0.1 * (np.array([2, 3]) - 0.5 - c * 6 * 4) for c in (1, 2)] + [[0.8, 0.7]])


def test_kappa_is_the_mean_product_of_smallest_eigenvalues(x64):
    rng = np.random.default_rng(0)
    b, c = (np.stack([m @ m.T for m in rng.normal(size=(3, 5, 5))]) for _ in range(2))
    p, q = (np.linalg.qr(rng.normal(size=(5, r)))[0] for r in (2, 3))
    each = [np.linalg.eigvalsh(p.T @ x @ p)[0] * np.linalg.eigvalsh(q.T @ y @ q)[0] for x, y in zip(b, c, strict=True)]
    np.testing.assert_allclose(varying.kappa(b, c, p, q), np.mean(each), rtol=1e-10)


def test_the_remainder_is_what_no_input_meets(x64):
    rng = np.random.default_rng(1)
    inputs, a = rng.normal(size=(9, 2)) @ rng.normal(size=(2, 6)), rng.normal(size=(4, 6))
    left = varying.remainder(a, inputs, 2)
    np.testing.assert_allclose(left @ inputs.T, 0, atol=1e-10)
    assert np.linalg.matrix_rank(a - left, tol=1e-9) == 2
