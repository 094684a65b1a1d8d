"""Rows of different length in one array."""

import jax.numpy as jnp
import numpy as np

from jaxdyn.theories.cogo.trials.padding import padded, parts


def test_rows_end_in_zeros():
    np.testing.assert_array_equal(padded([jnp.ones((2, 2)), jnp.full(3, 2.0)]), [[1, 1, 1, 1], [2, 2, 2, 0]])


def test_parts_are_real_and_imaginary(x64):
    np.testing.assert_array_equal(parts([jnp.array([1 + 2j]), jnp.array([3j, 4])]), [[[1, 0], [0, 4]], [[2, 0], [3, 0]]])
