"""Norms of arrays of any magnitude, against NumPy in longer numbers, and to the last bit where squares exist."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import optim
from jaxdyn.optim.sizes import binade, norm, tree_norm

NORM = jax.jit(norm, static_argnums=1)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.integers(0, 2**16), st.floats(-36, 37), st.sampled_from([None, 0, 1, (0, 1)]))
def test_norms_have_seven_digits_at_every_magnitude(seed, exponent, axis):
    x = (np.random.default_rng(seed).uniform(0.1, 1, (4, 6)) * 10**exponent).astype(np.float32)
    expected = np.linalg.norm(x.astype(np.float64), axis=axis, keepdims=True) if axis is not None else np.linalg.norm(np.float64(x))
    np.testing.assert_allclose(NORM(x, axis), np.broadcast_to(expected, NORM(x, axis).shape), rtol=1e-6)


@settings(deadline=None, max_examples=20, derandomize=True)
@given(st.integers(0, 2**16), st.floats(-12, 12))
def test_ordinary_norms_are_those_of_jax_to_the_last_bit(seed, exponent):
    x = (np.random.default_rng(seed).normal(size=(8, 8)) * 10**exponent).astype(np.float32)
    np.testing.assert_array_equal(NORM(x, (-2, -1))[0, 0], jax.jit(lambda x: jnp.linalg.norm(x, axis=(-2, -1)))(x))


def test_half_numbers_are_squared_in_float32():
    x = jnp.full((300, 300), 2.0, jnp.float16)
    assert norm(x).dtype == jnp.float32 and float(norm(x)[0, 0]) == 600


def test_zero_empty_and_not_finite_arrays():
    for x, expected in ((np.zeros(3), 0), (np.zeros((0, 3)), 0), (np.array([1, np.nan]), np.nan), (np.array([1, -np.inf]), np.inf)):
        np.testing.assert_array_equal(norm(jnp.asarray(x, jnp.float32)).ravel(), [expected])


def test_the_binade_is_the_power_of_two_below():
    np.testing.assert_array_equal(binade(jnp.array([[0.75, -3.0], [0.0, 0.0], [4.0, jnp.inf]]), 1), [[2], [1], [1]])
    assert jax.grad(lambda x: (x / binade(x))[0])(jnp.array([5.0]))[0] == 0.25


@pytest.mark.parametrize("size", [1e-30, 1e-20, 1.0, 1e20, 1e30])
def test_the_norm_of_a_tree_is_that_of_one_vector(size):
    tree = {"a": jnp.array([3.0, 0.0]) * size, "b": jnp.array([[4.0]], jnp.float32) * size, "none": jnp.zeros(0)}
    assert float(tree_norm(tree)) == pytest.approx(5 * size, rel=1e-6)
    assert float(tree_norm({})) == 0 and float(tree_norm({"a": jnp.zeros(3)})) == 0
    assert not np.isfinite(tree_norm({"a": jnp.array([1.0, jnp.nan])}))


@pytest.mark.parametrize("size", [1e20, 1e30])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_gradient_whose_square_overflows_is_clipped_to_its_norm(size, dtype):
    params, gradient = {"w": jnp.zeros(2, dtype)}, {"w": (jnp.array([3.0, 4.0]) * size).astype(dtype)}
    tx = optim.method("sgd", 1.0, optim.Options(clip=1.0)).tx
    step = tx.update(gradient, tx.init(params), params)[0]["w"]
    np.testing.assert_allclose(np.asarray(step, float), [-0.6, -0.8], rtol=1e-2 if dtype == "bfloat16" else 1e-5)
