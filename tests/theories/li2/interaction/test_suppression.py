"""Gains of the polar factor in irreps that other nodes hold, where Lemma 9 says what they are; the judge on planted gains."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.interaction import suppression

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
def test_lemma_9_next_to_nodes_that_hold_their_irreps(planted, across):
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


CLAIM = suppression.CLAIMS[0]


def planted_gains(factor, seeds=32):
    """Gains whose held part is ``factor`` of the free one, with noise of 5%."""
    rng = np.random.default_rng(0)
    free = np.exp(rng.normal(size=(seeds, 3)))
    gain = np.stack([factor * free * np.exp(0.05 * rng.normal(size=free.shape)), free], -1)
    coords = {"seed": np.arange(seeds), "epoch": [100, 200, 300], "part": ["held", "free"]}
    axes = ("seed", "epoch", "part")
    return xr.Dataset({"measured_gain": (axes, gain), "test_accuracy": (axes[:2], 0 * free)}, coords)


@pytest.mark.parametrize(("factor", "outcome"), [(1.0, True), (0.95, True), (0.8, False), (0.5, False), (1.3, False)])
def test_a_tenth_decides(factor, outcome):
    assert {c.passed for c in CLAIM.judge(planted_gains(factor))} == {outcome}


def test_the_rival_halves_what_others_hold():
    (rival,) = CLAIM.rivals.values()
    np.testing.assert_allclose(suppression.ratio(rival(planted_gains(1.0))), np.log(0.5))


def test_too_few_seeds_decide_nothing():
    with pytest.raises(jd.Inconclusive):
        CLAIM.judge(planted_gains(1.0, seeds=8))


def test_the_figure_has_data():
    fig = Figure()
    CLAIM.plot(planted_gains(1.0), fig)
    assert all(ax.has_data() for ax in fig.axes)
