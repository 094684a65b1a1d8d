"""Blocks made by hand: their shapes, and the energy of members of the largest irrep."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.dynamics import shapes


@pytest.mark.slow
def test_shapes_of_blocks_made_by_hand(x64):
    """S3: one node of rank one, one whose u has singular values 0.8 and 0.6."""
    irreps = decompose(parse("S3"))
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2, 2)))[0]
    blocks = np.stack([turn[0][:, :1] @ turn[1][:1], turn[0] @ np.diag([0.8, 0.6]) @ turn[1]])
    u = np.einsum("gab,nab->gn", irreps.matrices[2], blocks)
    values, aligned, predicted = shapes.shapes(jnp.asarray(u), jnp.asarray(u), irreps, jnp.asarray([1, 1]))
    np.testing.assert_allclose(values, [[1, 0], [0.8, 0.6]], atol=1e-12)
    np.testing.assert_allclose(aligned, [1, np.sqrt(0.8**4 + 0.6**4)], atol=1e-12)
    np.testing.assert_allclose(predicted, [[1, 0], [1, 0]])


@pytest.mark.slow
def test_members_lie_in_the_largest_irrep_and_have_the_energy_of_their_singular_values(x64):
    irreps = decompose(parse("S4"))
    assert shapes.largest(shapes.energy.peaks(irreps)).degree == 3
    singular, energy, formula = shapes.members(jax.random.normal(jax.random.key(0), (48, 5), jnp.float64), irreps)
    np.testing.assert_allclose(np.sum(np.square(singular), 1), 1, rtol=1e-12)
    np.testing.assert_allclose(energy, formula, rtol=1e-10)
    assert np.all(np.asarray(energy) < 24 / 6)


def test_shares_sum_to_one_without_the_trivial_irrep(x64):
    irreps = decompose(parse("Q8"))
    u = np.random.default_rng(0).normal(size=(8, 3))
    share = np.asarray(shapes.shares(jnp.asarray(u - u.mean(0)), irreps))
    assert share.shape == (3, len(irreps.merged) - 1)
    np.testing.assert_allclose(share.sum(1), 1, rtol=1e-12)
