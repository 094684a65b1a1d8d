"""Least nuclear norms against a first-order method, a case by hand, and a case that has no solution."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.margin.dynamics import nuclear


def primal_dual(a: np.ndarray, steps: int) -> np.ndarray:
    """Chambolle and Pock's method: singular values are shrunk, multipliers climb."""
    w, b = np.zeros(a.shape[1:]), np.zeros(len(a))
    size = 0.99 / np.linalg.norm(a.reshape(len(a), -1), 2)
    for _ in range(steps):
        u, s, v = np.linalg.svd(w + size * np.einsum("m,mij->ij", b, a))
        new = (u * np.maximum(s - size, 0)) @ v
        b = np.maximum(b + size * (1 - np.einsum("mij,ij->m", a, 2 * new - w)), 0)
        w = new
    return w


@pytest.mark.parametrize("seed", range(3))
def test_against_a_first_order_method(x64, seed):
    a = np.random.default_rng(seed).normal(size=(5, 3, 3)) + 0.3
    solved = nuclear.least_nuclear(jnp.asarray(a))
    assert float(solved.gap) < 1e-5
    assert np.all(np.einsum("mij,ij->m", a, solved.w) >= 1 - 1e-9)
    other = primal_dual(a, 20_000)
    np.testing.assert_allclose(np.sum(solved.singular), np.linalg.norm(other, "nuc"), rtol=1e-5)
    np.testing.assert_allclose(solved.w, other, atol=1e-3)


def test_by_hand_and_impossible(x64):
    """One constraint: the least value is 1 over the operator norm, on the first singular vectors."""
    one = np.diag([2.0, 0.5])
    solved = nuclear.least_nuclear(jnp.asarray(one[None]))
    np.testing.assert_allclose(solved.w, np.diag([0.5, 0.0]), atol=1e-6)
    assert not float(nuclear.least_nuclear(jnp.asarray(np.stack([one, -one]))).gap) < 1e-2
