"""The written-out flow of both layers against autodiff of the theory's loss."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import both

GROUP = parse("5")
field = jax.jit(both.field)  # as one program: by itself every operation would be compiled


def problem(rate=1.0):
    samples = model.pairs(5)[:17]  # classes are not balanced
    start = jax.jit(lambda key: model.init(key, 5, 6, "float64"))(jax.random.key(2))
    return start, both.Problem(samples, model.targets(GROUP, samples), *(jnp.asarray(x, jnp.float64) for x in (0.3, 0.7, rate)))


@pytest.mark.slow
def test_the_flow_descends_the_decayed_loss(x64):
    p, given = problem()

    def loss(p):
        f = model.features(p.w, given.samples)
        return model.theory_loss(p.v, f, given.y, given.eta) + given.decay / 2 * jnp.sum(p.w**2)

    for mine, theirs in zip(field(0.0, p, given), jax.jit(jax.grad(loss))(p), strict=True):
        np.testing.assert_allclose(mine, -theirs, rtol=1e-11, atol=1e-13)


def test_a_frozen_top_layer_stays_and_the_hidden_one_moves_as_before(x64):
    p, given = problem(rate=0.0)
    moved = field(0.0, p, given)
    np.testing.assert_array_equal(moved.v, 0)
    np.testing.assert_array_equal(moved.w, field(0.0, *problem()).w)
