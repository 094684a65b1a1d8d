"""The equations of Li2, against definitions in numpy."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import both, depth, repulsion, shapes
from jaxdyn.theories.li2.dynamics import memory as theory
from jaxdyn.theories.li2.dynamics.critical import critical_share, order_share
from tests.theories.li2.helpers import SHAPES, centred, drawn

# The written-out flow of both layers against autodiff of the theory's loss.

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


# Shares of pairs at which features are expected to be kept.


@pytest.mark.parametrize(("name", "order", "factor"), [("23", 23, 1.0), ("D12", 24, 1.0), ("A5", 60, 2.5)])
def test_shares_grow_with_half_the_largest_degree(name, order, factor):
    assert order_share(order) == pytest.approx(2.7482 * math.log(order) / order, rel=1e-12)
    assert critical_share(parse(name)) == pytest.approx(factor * order_share(order), rel=1e-12)


# The signal through one more layer against the mean over angles.


def test_what_a_wide_upper_layer_sends_down_is_the_mean_over_its_nodes(x64):
    """In two dimensions the mean over a Gaussian node is twice that over its angle."""
    rng = np.random.default_rng(8)
    f, half = rng.normal(size=(5, 2)), rng.normal(size=(5, 5))
    signal = half + half.T
    angle = (np.arange(400_000) + 0.5) * 2 * np.pi / 400_000
    w = np.stack([np.cos(angle), np.sin(angle)])
    a = f @ w
    expected = 2 * ((signal @ np.maximum(a, 0)) * (a > 0)) @ w.T / len(angle)
    np.testing.assert_allclose(jax.jit(depth.received)(f, signal), expected, atol=3e-5)
    assert np.abs(depth.masked(f, signal) - expected).max() > 0.05


# Strengths of memorised pairs against SciPy.

P = (0.1, 0.15, 0.2, 0.25, 0.3)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("relu", (0.298, 0.447, 0.596, 0.745, 0.894)),
        ("silu", (0.216, 0.361, 0.539, 0.749, 0.986)),
        ("tanh", (0.400, 0.534, 0.638, 0.722, 0.792)),
    ],
)
def test_strengths_of_memorised_pairs(x64, kind, expected):
    s = theory.spread(jnp.asarray(P), kind)
    np.testing.assert_allclose(s, expected, atol=6e-4)
    np.testing.assert_allclose(jnp.sum(s**2), 2, rtol=1e-12)
    act = {"relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x)), "tanh": np.tanh}[kind]
    found = scipy.optimize.minimize(
        lambda x: -np.dot(P, act(x)), np.full(5, 0.6), constraints={"type": "eq", "fun": lambda x: x @ x - 2}, tol=1e-12
    )
    np.testing.assert_allclose(s, found.x, atol=1e-4)


def test_an_ascent_of_one_target_shares_between_both_weights(x64):
    group = parse("S3")
    p = jnp.asarray([0.1, 0.1, 0.2, 0.1, 0.3, 0.2])
    w = theory.ascend(jnp.abs(jax.random.normal(jax.random.key(0), (12, 2), jnp.float64)), p, group, "tanh", target=4)
    for g in range(6):
        second = next(b for b in range(6) if group.table[g, b] == 4)
        np.testing.assert_allclose(w[g], w[6 + second], atol=1e-9)
    np.testing.assert_allclose(theory.strengths(w, group, 4)[:, 0], theory.spread(p, "tanh"), atol=1e-9)


# Repulsion against the inverse Gram matrix in NumPy.

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


# Blocks made by hand: their shapes, and the energy of members of the largest irrep.


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
