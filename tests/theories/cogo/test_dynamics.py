"""What CoGO predicts: carriers, shares of blocks and partial solutions, against minimisers and sums over nodes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import gram
from jaxdyn.theories.cogo.dynamics import carriers, orders, partial, semiring
from jaxdyn.theories.cogo.potentials import partial as claims
from tests.theories.cogo.oracle import PLACES, W, angles, brute, composed, loss, nu, syn, turn, weights, xi

# The sum of potentials under weight decay, against a minimiser.


def test_a_network_held_by_decay_has_the_predicted_diagonal(x64):
    group, decay = parse("5"), 2e-3
    start = composed(group, 2)

    def with_decay(flat):
        w = flat.reshape(start.shape)
        return gram.loss(w, group, "code") + decay / 2 * jnp.sum(w**2)

    both = jax.jit(jax.value_and_grad(with_decay))
    best = scipy.optimize.minimize(lambda x: [np.asarray(v) for v in both(x)], start.ravel(), jac=True, tol=1e-14)
    w = best.x.reshape(start.shape)
    assert np.abs(best.jac).max() < 1e-7
    z = np.fft.fft(w, axis=1)[:, 1:] / 5
    diagonal = 2 * 5 * np.sum(z[0] * z[1] * z[2].conj()).real
    norm = np.sum(w**2)
    predicted = carriers.diagonal_under_decay(group, decay, norm, best.fun - decay / 2 * norm)
    assert diagonal == pytest.approx(float(predicted), rel=1e-6)
    assert 4 - diagonal > 0.02


# The share of a block in the loss, and the search over blocks, against sums over nodes.


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


# Partial solutions and the table of their potentials against sums over nodes.


def SYN_AB(a, b):  # noqa: N802
    return [np.ones(3), np.array([a * W, np.conj(a) * W, W]), np.array([b * W**2, np.conj(b) * W**2, W**2])]


def XI_TWIN(x):  # noqa: N802
    return [np.ones(3), np.array([x, 1j * np.conj(x), -1j])]


@jax.jit
def TABLES(u, v):  # noqa: N802
    columns = partial.syn(), partial.syn_ab(u, v), partial.nu(u), partial.xi(u), partial.xi(u, True)
    tables = partial.syn_table(), partial.syn_ab_table(u, v), partial.nu_table(u), partial.xi_table(u), partial.xi_table(u, True)
    return columns, tables


@settings(deadline=None, max_examples=10)
@given(angles, angles)
def test_tables_are_sums_over_nodes(first, second):
    with jax.enable_x64(True):
        u, v = turn(first), turn(second)
        columns, tables = ([np.asarray(c) for c in both] for both in TABLES(u, v))
        expected = [np.array(c).T for c in (syn(), SYN_AB(u, v), nu(u), xi(u), XI_TWIN(u))]
        for column, right, table in zip(columns, expected, tables, strict=True):
            np.testing.assert_allclose(column, right, atol=1e-14)
            found = [brute(right, *place) for place in PLACES]
            np.testing.assert_allclose(table, found, atol=1e-13)


def test_special_numbers(x64):
    eighth = jnp.exp(1j * jnp.pi / 4)
    np.testing.assert_allclose(partial.xi(eighth), partial.nu(eighth), atol=1e-15)
    np.testing.assert_allclose(partial.syn_ab(jnp.asarray(1 + 0j), jnp.asarray(1 + 0j)), partial.syn(), atol=1e-15)
    np.testing.assert_allclose(partial.potentials(partial.multiply(partial.syn(), partial.nu(eighth))), [6, *[0] * 9], atol=1e-14)


def test_embedded_columns_and_the_semi_ring_s_product_agree(x64):
    group = parse("7")

    @jax.jit
    def both(v):
        x, y = partial.syn(), partial.nu(v)
        product = semiring.multiply(partial.embed(x, group, 3), partial.embed(y, group, 3))
        joint = partial.multiply(x, y)
        apart = semiring.distance(product, partial.embed(joint, group, 3))
        return apart, claims.measured_potentials(product, group, 3), partial.potentials(joint)

    apart, through_weights, direct = both(jnp.asarray(turn(0.7)))
    assert float(apart) < 1e-15
    np.testing.assert_allclose(through_weights, direct, atol=1e-14)


@pytest.mark.parametrize(("name", "k"), [("7", 0), ("7", 7), ("7", -1), ("4", 2), ("2x2", 1)])
def test_embedding_refuses_frequencies_without_a_partner(name, k, x64):
    with pytest.raises(jd.UsageError, match=f"k={k} is not allowed: the frequencies of {name} that come in pairs are"):
        partial.embed(partial.syn(), parse(name), k)
