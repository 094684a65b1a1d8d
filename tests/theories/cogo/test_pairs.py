"""The written-out gradient of the loss over pairs against automatic differentiation of the plain form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import model, pairs


@pytest.mark.parametrize("name", ["5", "2x3"])
def test_value_and_gradient_are_those_of_the_plain_loss(x64, name):
    group = parse(name)
    w = jax.random.normal(jax.random.key(0), (3, group.order, 4), jnp.float64)
    used = jax.random.bernoulli(jax.random.key(1), 0.7, (group.order,) * 2)
    value, slope = jax.jit(jax.value_and_grad(lambda w: pairs.loss(w, group, used)))(w)
    plain, expected = jax.jit(jax.value_and_grad(lambda w: model.loss(w, group, "code", used)))(w)
    assert float(value) == pytest.approx(float(plain), rel=1e-12)
    np.testing.assert_allclose(slope, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_other_pairs_play_no_part(x64):
    group = parse("5")
    w = jax.random.normal(jax.random.key(0), (3, 5, 2), jnp.float64)
    used = jnp.zeros((5, 5), bool).at[0].set(True)
    slope = pairs.gradient(w, group, used)
    assert np.all(np.asarray(slope[0, 1:]) == 0) and np.any(np.asarray(slope[0, 0]) != 0)
