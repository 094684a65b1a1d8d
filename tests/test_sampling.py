"""Numbers drawn in one place are those of jax.random."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import sampling
from jaxdyn.errors import UsageError


@pytest.mark.thinned
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 4, 8)])
def test_normal_numbers_are_those_of_jax(shape, x64):
    key = jax.random.key(3)
    ours = jax.jit(lambda k: sampling.normal(k, shape))
    np.testing.assert_allclose(ours(key), jax.jit(lambda k: jax.random.normal(k, shape, jnp.float64))(key), rtol=1e-14)
    pair = jax.jit(jax.vmap(ours))(jax.random.split(key))
    np.testing.assert_allclose(pair[1], ours(jax.random.split(key)[1]), rtol=1e-14)


def test_there_may_be_none_or_a_single_one(x64):
    key = jax.random.key(0)
    assert sampling.normal(key, (0, 3)).shape == (0, 3) and sampling.normal(key, (np.int64(2), 1)).shape == (2, 1)
    np.testing.assert_allclose(sampling.normal(key, ()), jax.random.normal(key, (), jnp.float64), rtol=1e-14)


@pytest.mark.parametrize("shape", [5, "3", (2.0,), (True,), (-1,), ("a",), None, np.asarray([2])])
def test_what_is_no_shape_is_refused(shape, x64):
    with pytest.raises(UsageError, match="shape=.* is not allowed"):
        sampling.normal(jax.random.key(0), shape)


def test_one_key_and_64_bits_are_needed(x64):
    for key in (jax.random.split(jax.random.key(0)), 3, None, np.zeros(2), np.zeros((2, 2), np.uint32)):
        with pytest.raises(UsageError, match="it is one key of jax.random.key, and jax.vmap takes many"):
            sampling.normal(key, (2,))
    with jax.enable_x64(False), pytest.raises(UsageError, match=r"call this inside jax.enable_x64\(True\)"):
        sampling.normal(jax.random.key(0), (2,))
