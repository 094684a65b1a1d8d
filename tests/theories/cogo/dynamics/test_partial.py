"""Partial solutions and the table of their potentials against sums over nodes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import jaxdyn as jd
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo.dynamics import partial, semiring
from jaxdyn.theories.cogo.potentials import partial as claims
from tests.theories.cogo.oracle import PLACES, W, angles, brute, nu, syn, turn, xi


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
