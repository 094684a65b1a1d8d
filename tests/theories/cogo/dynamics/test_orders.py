"""The share of a block in the loss, and the search over blocks, against sums over nodes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo.dynamics import orders
from tests.theories.cogo.oracle import PLACES, brute, loss, weights


@settings(deadline=None, max_examples=5)
@given(st.integers(0, 2**20))
def test_residual_is_a_block_s_share_of_the_loss(seed):
    with jax.enable_x64(True):
        rng = np.random.default_rng(seed)
        columns = rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))
        group = parse("7")
        direct = loss(weights([{2: node} for node in columns.T], group), group)
        share = float(jnp.sum(jnp.square(orders.residual(jnp.asarray(columns), 1.0, 1.0))))
        assert direct == pytest.approx(1 - 1 / 7 + 2 / 7 * (share - 1), rel=1e-10)


def test_search_ends_at_a_solution_of_order_four_without_bias(x64):
    rng = np.random.default_rng(0)
    start = jnp.asarray(0.7 * (rng.normal(size=(8, 3, 4)) + 1j * rng.normal(size=(8, 3, 4))))
    ends = jax.jit(jax.vmap(lambda x: orders.solve(x, jnp.ones(4, bool), 0.0)))(start)
    best = int(np.argmin(ends.loss[:, -1]))
    z = np.asarray(ends.columns)[best]
    values = [brute(z, *place) for place in PLACES]
    np.testing.assert_allclose([values[0], *values[1:4], *values[6:]], [1, *[0] * 7], atol=1e-12)
    assert float(ends.energy[best, -1]) == pytest.approx(2 * np.sum(np.abs(z) ** 2), rel=1e-12)
    assert float(ends.loss[best, -1]) < 1e-20
