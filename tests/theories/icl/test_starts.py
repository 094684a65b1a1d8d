"""Starts of every kind: their norms, and which entries differ from zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.icl import starts
from jaxdyn.theories.icl.gf_limit import Limit


@pytest.mark.parametrize("start", ["paper", "white"])
def test_start_of_two_blocks(x64, start):
    p = starts.first_weights(_code(start), jax.random.key(1), 3, 2, 0.3, 0.5)
    found, rest = starts.blocks(p.pv, p.kq)
    np.testing.assert_allclose((jnp.linalg.norm(found.block), found.u**2), (0.3, 0.59), rtol=1e-12)
    assert float(rest) == 0 and min(np.linalg.eigvalsh(found.block)) > 0
    assert float(jnp.sum(jnp.abs(p.pv))) == float(found.u) and p.value.shape == (2, 4)
    assert start == "paper" or np.allclose(found.block, found.block[0, 0] * np.eye(3))


def test_other_starts(x64):
    zero = starts.first_weights(_code("zero"), jax.random.key(1), 3, 1, 0.3, 0.5)
    assert all(float(jnp.sum(jnp.abs(x))) == 0 for x in zero)
    dense = starts.first_weights(_code("dense"), jax.random.key(1), 3, 1, 0.3, 0.5)
    assert float(starts.blocks(dense.pv, dense.kq)[1]) > 0.01 and float(jnp.max(jnp.abs(dense.value))) == 0
    heads = starts.first_weights(_code("heads"), jax.random.key(1), 3, 40, 0.3, 0.5)
    assert float(jnp.max(jnp.abs(heads.pv))) == 0
    np.testing.assert_allclose(np.std(np.stack(heads[2:])), 0.3, rtol=0.1)


def _code(name):
    """The switch as a trial sees it."""
    return Limit(start=name).start
