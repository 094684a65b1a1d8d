"""Singular values of windows against NumPy, and first crossings."""

import jax
import numpy as np

from jaxdyn.theories.xu.dynamics import window


def test_values_are_numpys_in_every_window(x64):
    updates = jax.random.normal(jax.random.key(0), (9, 30), "float32")
    sigma = np.asarray(window.values(updates, 4))
    assert sigma.shape == (6, 4) and sigma.dtype == np.float64
    for i in range(6):
        exact = np.linalg.svd(np.asarray(updates[i : i + 4], np.float64), compute_uv=False)
        np.testing.assert_allclose(sigma[i], exact, rtol=1e-10)


def test_updates_of_low_rank_leave_the_other_values_at_zero(x64):
    one, two = jax.random.normal(jax.random.key(1), (2, 1, 30), "float32")
    factors = jax.random.normal(jax.random.key(2), (7, 2), "float32")
    sigma = np.asarray(window.values(factors[:, :1] * one + factors[:, 1:] * two, 5))
    assert (sigma[:, 1] > 1e-2).all() and (sigma[:, 2:] < 1e-5 * sigma[:, :1]).all()


def test_first_is_the_earliest_flag_or_infinity():
    flags = np.array([[False, True, False, True], [False] * 4, [True] * 4])
    np.testing.assert_array_equal(window.first(flags, np.array([5, 10, 15, 20])), [10, np.inf, 5])
