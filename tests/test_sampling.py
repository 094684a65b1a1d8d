"""Numbers drawn in one place are those of jax.random."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import sampling


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 4, 8)])
def test_normal_numbers_are_those_of_jax(shape, x64):
    key = jax.random.key(3)
    ours = jax.jit(lambda k: sampling.normal(k, shape))
    np.testing.assert_allclose(ours(key), jax.jit(lambda k: jax.random.normal(k, shape, jnp.float64))(key), rtol=1e-14)
    pair = jax.jit(jax.vmap(ours))(jax.random.split(key))
    np.testing.assert_allclose(pair[1], ours(jax.random.split(key)[1]), rtol=1e-14)
