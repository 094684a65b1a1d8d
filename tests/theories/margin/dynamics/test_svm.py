"""Largest margins against scipy's solver of another kind, a case by hand, and a case that has none."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from jaxdyn.theories.margin.dynamics import svm


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


def test_by_hand_and_impossible(x64):
    solved = svm.largest_margin(jnp.asarray([[2.0, 0.0], [0.0, 0.5]]))
    np.testing.assert_allclose(solved.p, (0.5, 2.0), rtol=1e-7)
    np.testing.assert_allclose(solved.multipliers, (0.25, 4.0), rtol=1e-6)
    assert not float(svm.largest_margin(jnp.asarray([[1.0, 0.0], [-1.0, 0.0]])).error) < 1e-3
