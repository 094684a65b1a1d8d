"""Gains of the polar factor in irreps that other nodes hold, where Lemma 9 says what they are."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.trials import suppression

HELD, FREE = 5, 7  # irreps of Z_23 that are held, and the one that none holds


GAINS, MASSES = jax.jit(suppression.gains, static_argnums=2), jax.jit(suppression.masses, static_argnums=1)


@functools.partial(jax.jit, static_argnums=0)
def maxima(irreps):
    pairs = irreps.merged[1:]
    return jnp.stack([energy.random_maximum(jax.random.key(k), irreps, pairs[k][0])[:, 0] for k in range(FREE + 1)], 1)


@pytest.fixture
def planted(x64):
    """Nodes of one irrep each, and their irreps."""
    irreps = decompose(parse("23"))
    return maxima(irreps), irreps


def test_masses_are_those_of_the_irreps(planted):
    w, irreps = planted
    mass = np.asarray(MASSES(w, irreps))
    np.testing.assert_allclose(mass[:, : FREE + 1], np.eye(FREE + 1), atol=1e-12)
    assert mass[:, FREE + 1 :] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("across", [0.05, 0.3, 1.0])
def test_lemma_9_beside_nodes_that_hold_their_irreps(planted, across):
    """The gradients of held nodes point along them; the last node's has a small part there and one in a free irrep."""
    w, irreps = planted
    nodes = jnp.concatenate([w[:, :HELD], w[:, HELD : HELD + 1]], 1)
    along = 1e-4 * jnp.sum(w[:, :HELD], 1)
    g = jnp.concatenate([w[:, :HELD], (along + across * w[:, FREE])[:, None]], 1)
    held, free = GAINS(nodes, g, irreps)
    assert float(free) == pytest.approx(1 / across, rel=1e-3)
    assert float(held) == pytest.approx(1 / (1 + across), rel=1e-3)


def test_gains_by_hand(planted):
    """Against SciPy's polar factor and loops over nodes and irreps."""
    w, irreps = planted
    rng = np.random.default_rng(0)
    nodes = np.asarray(w)[:, [0, 1, 2, 2, 3, 4]] + 0.05 * rng.normal(size=(46, 6))
    g = rng.normal(size=(46, 6))
    turned = scipy.linalg.polar(g)[0]
    share, before, after = (np.asarray(MASSES(jnp.asarray(x), irreps)) for x in (nodes, g, turned))
    share = share / np.sum(nodes**2, 0)[:, None]
    sums = np.zeros((2, 2))
    for k in range(6):
        for j in range(share.shape[1]):
            if j != np.argmax(share[k]):
                free = not any(share[i, j] >= suppression.HELD for i in range(6) if i != k)
                sums[int(free)] += before[k, j], after[k, j]
    np.testing.assert_allclose(GAINS(jnp.asarray(nodes), jnp.asarray(g), irreps), np.sqrt(sums[:, 1] / sums[:, 0]), rtol=1e-9)
