"""Repulsion against the inverse Gram matrix in NumPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.theories.li2.dynamics import repulsion
from tests.theories.li2.helpers import SHAPES, centred, drawn

coefficients = jax.jit(jax.vmap(repulsion.coefficient, (None, 0, None)))


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 2**20), st.sampled_from(SHAPES), st.sampled_from([0.05, 2.0]))
def test_repulsion_is_the_entry_of_the_inverse(seed, shape, eta):
    with jax.enable_x64(True):
        f, _, _ = drawn(seed, shape)
        b = np.linalg.inv(centred(f).T @ centred(f) + eta * np.eye(shape[1]))
        pairs = np.array(list(itertools.combinations(range(shape[1]), 2))[:6])
        for both in (pairs, pairs[:, ::-1]):
            found = coefficients(f, both, eta)
            np.testing.assert_allclose(found, b[both[:, 0], both[:, 1]], atol=1e-11 * np.abs(b).max())


def test_nodes_that_share_a_feature_repel_and_others_do_not_act(x64):
    rng = np.random.default_rng(6)
    q = np.linalg.qr(centred(rng.normal(size=(10, 4))))[0]
    f = jnp.asarray(np.stack([q[:, 0], q[:, 0], -q[:, 0], q[:, 1]], 1))
    same, opposite, other = coefficients(f, jnp.array([(0, 1), (0, 2), (0, 3)]), 0.5)
    assert same < -0.1 and opposite == pytest.approx(-float(same)) and other == pytest.approx(0, abs=1e-14)
