"""Largest margins and least nuclear norms against solvers of another kind, cases by hand, and cases without a solution."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from jaxdyn.theories.margin.dynamics import nuclear, svm


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


def test_differences():
    features = np.arange(12.0).reshape(2, 3, 2)
    found = svm.differences(jnp.asarray(features), jnp.asarray([1, 2]))
    expected = [features[0, 1] - features[0, 0], features[0, 1] - features[0, 2]]
    expected += [features[1, 2] - features[1, 0], features[1, 2] - features[1, 1]]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(4))
def test_against_scipy(x64, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(9, 4)) + 1.2
    solved = svm.largest_margin(jnp.asarray(a))
    rows = [{"type": "ineq", "fun": lambda p: a @ p - 1, "jac": lambda p: a}]
    other = minimize(lambda p: p @ p / 2, np.ones(4), jac=lambda p: p, constraints=rows, method="SLSQP", options={"ftol": 1e-14})
    assert other.success == (float(solved.error) < 1e-6)
    if other.success:
        np.testing.assert_allclose(solved.p, other.x, rtol=1e-5, atol=1e-6)


def test_by_hand_and_impossible_of_svm(x64):
    solved = svm.largest_margin(jnp.asarray([[2.0, 0.0], [0.0, 0.5]]))
    np.testing.assert_allclose(solved.p, (0.5, 2.0), rtol=1e-7)
    np.testing.assert_allclose(solved.multipliers, (0.25, 4.0), rtol=1e-6)
    assert not float(svm.largest_margin(jnp.asarray([[1.0, 0.0], [-1.0, 0.0]])).error) < 1e-3
