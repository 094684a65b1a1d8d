"""The semi-ring against NumPy loops, and the arguments that it refuses."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo.dynamics import semiring, spectrum
from jaxdyn.theories.cogo.dynamics.semiring import Element

GROUPS = ("5", "6", "2x4")
sizes = st.sampled_from([(1, 2), (3, 2)])


def drawn(seed, name, *widths):
    """Random elements, made from weights in NumPy."""
    rng, group = np.random.default_rng(seed), parse(name)
    found = []
    for width in widths:
        w = rng.normal(size=(3, group.order, width))
        a, b = (group.characters.conj() @ layer for layer in w[:2])
        z = np.stack([a, b, group.characters @ w[2]]) / group.order**0.5
        z[:, 0] = 0
        found.append(Element(jnp.asarray(z), jnp.ones(width, bool)))
    return found


@jax.jit
def arithmetic(x, y):
    """Compiled in one go: single operations would each be compiled for each shape."""
    return semiring.add(x, y), semiring.multiply(x, y), semiring.multiply(y, x), semiring.power(x, 3)


distance = jax.jit(semiring.distance)


def nodes_of(x):
    """The live nodes as a list of arrays (3, d)."""
    z, live = np.asarray(x.z), np.asarray(x.nodes)
    return [z[..., j] for j in np.flatnonzero(live)]


def same_nodes(found, expected):
    """Whether two lists of nodes are equal but for their order, by pairing each with the nearest one left."""
    left = list(expected)
    for node in found:
        errors = [np.abs(node - other).max() for other in left]
        if not errors or min(errors) > 1e-12:
            return False
        left.pop(int(np.argmin(errors)))
    return not left


def products(x, y):
    return [a * b for a, b in itertools.product(nodes_of(x), nodes_of(y))]


def potential(nodes, k1, k2, k, layers=(0, 1, 2)):
    return sum(n[layers[0], k1] * n[layers[1], k2] * n[layers[2], k] for n in nodes)


@settings(deadline=None, max_examples=5)
@given(st.integers(0, 2**20), st.sampled_from(GROUPS[1:]), sizes)
def test_sums_and_products_are_those_of_lists_of_nodes(seed, name, widths):
    with jax.enable_x64(True):
        x, y = drawn(seed, name, *widths)
        total, product, swapped, cube = arithmetic(x, y)
        assert same_nodes(nodes_of(total), nodes_of(x) + nodes_of(y))
        assert same_nodes(nodes_of(product), products(x, y))
        assert same_nodes(nodes_of(swapped), products(x, y))
        assert same_nodes(nodes_of(cube), [a * b for a, b in itertools.product(nodes_of(x), products(x, x))])
        assert int(semiring.order(cube)) == widths[0] ** 3


@settings(deadline=None, max_examples=5)
@given(st.integers(0, 2**20), st.sampled_from(GROUPS))
def test_potentials_of_a_polynomial_are_the_polynomial_of_potentials(seed, name):
    coefficients = (2, 0, 1, 1)
    with jax.enable_x64(True):
        (x,) = drawn(seed, name, 2)
        found = nodes_of(jax.jit(lambda x: semiring.polynomial(x, coefficients))(x))
        assert len(found) == sum(n * 2**i for i, n in enumerate(coefficients))
        for place, layers in (((1, 2, 3), (0, 1, 2)), ((2, 2, 1), (0, 0, 2)), ((3, 1, 2), (1, 1, 2))):
            r = potential(nodes_of(x), *place, layers)
            expected = sum(n * r**i for i, n in enumerate(coefficients))
            assert potential(found, *place, layers) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("name", GROUPS)
def test_random_elements_and_products_belong_to_real_weights(name, x64):
    group = parse(name)

    @jax.jit
    def made(key):
        x = semiring.random(key, group, 2)
        product = semiring.multiply(x, semiring.random(jax.random.fold_in(key, 1), group, 3))
        w = semiring.weights(product, group)
        return product, w, spectrum.transform(w, group), semiring.energy(product)

    product, w, back, energy = jax.tree.map(np.asarray, made(jax.random.key(4)))
    chi = group.characters
    complex_w = np.stack([chi.T @ product.z[0], chi.T @ product.z[1], chi.conj().T @ product.z[2]])
    np.testing.assert_allclose(complex_w, w, atol=1e-12)
    assert np.sum(w**2) / group.order == pytest.approx(float(energy), rel=1e-12)
    np.testing.assert_allclose(back, product.z, atol=1e-12)
    np.testing.assert_array_equal(product.z[:, 0], 0)


def test_neutral_elements_and_negative(x64):
    (x,) = drawn(0, "5", 3)

    @jax.jit
    def same(x):
        zero, one = semiring.zero(parse("5")), semiring.one(parse("5"))
        pairs = [
            (semiring.add(x, zero), x),
            (semiring.multiply(one, x), x),
            (semiring.copies(x, 0), zero),
            (semiring.power(x, 0), one),
            (semiring.multiply(zero, x), zero),
        ]
        less = semiring.add(x, semiring.negative(x))
        apart = [semiring.distance(*pair) for pair in pairs]
        return jnp.stack(apart), semiring.order(less), spectrum.potentials(less.z), semiring.distance(less, zero)

    apart, order, potentials, away = same(x)
    np.testing.assert_array_equal(apart, 0)
    assert int(order) == 6
    np.testing.assert_allclose(potentials, 0, atol=1e-13)
    assert float(away) == np.inf


@pytest.mark.parametrize("factor", [1 / 6, -2.0])
def test_scaling_multiplies_potentials(factor, x64):
    (x,) = drawn(1, "5", 3)
    scaled = nodes_of(jax.jit(semiring.scaled)(x, factor))
    for place in ((1, 2, 3), (4, 1, 1)):
        assert potential(scaled, *place) == pytest.approx(factor * potential(nodes_of(x), *place), rel=1e-12)


def test_distance_sees_permutations_as_equal_and_a_changed_node_not(x64):
    (x,) = drawn(2, "2x4", 5)
    z = np.asarray(x.z)[..., ::-1].copy()
    assert float(distance(x, Element(jnp.asarray(z), x.nodes))) == 0
    z[1, 3, 2] += 1e-6
    assert float(distance(x, Element(jnp.asarray(z), x.nodes))) == pytest.approx(1e-6, rel=1e-6)


def test_places_without_a_node_are_zero_and_are_passed_over(x64):
    (x,) = drawn(3, "5", 4)

    @jax.jit
    def places(x):
        masked = semiring.element(x.z, jnp.array([True, False, True, False]))
        return masked, semiring.compact(masked, 2), semiring.compact(masked, 7), semiring.compact(x, 3)

    masked, short, wide, over = jax.tree.map(np.asarray, places(x))
    assert masked.nodes.sum() == 2
    np.testing.assert_array_equal(masked.z[..., 1], 0)
    np.testing.assert_array_equal(masked.z[:, 0], 0)
    np.testing.assert_array_equal(short.z, np.asarray(x.z)[..., [0, 2]])
    assert short.nodes.all()
    assert wide.z.shape == (3, 5, 7) and wide.nodes.sum() == 2
    assert float(distance(masked, short)) == 0
    assert np.isnan(over.z).all()


def test_elements_vmap_with_traced_numbers_of_nodes(x64):
    (x,), (y,) = drawn(4, "5", 4), drawn(5, "5", 2)

    def product(count):
        part = semiring.element(x.z, jnp.arange(4) < count)
        whole = semiring.multiply(part, y)
        return semiring.order(whole), spectrum.potentials(whole.z)[1, 2, 3]

    orders, found = jax.jit(jax.vmap(product))(jnp.arange(5))
    np.testing.assert_array_equal(orders, 2 * np.arange(5))
    for count in range(5):
        expected = potential(nodes_of(x)[:count], 1, 2, 3) * potential(nodes_of(y), 1, 2, 3)
        assert complex(found[count]) == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_annihilator_multiplies_the_factors_out():
    assert semiring.annihilator([]) == (1,)
    assert semiring.annihilator([-1]) == (1, 1)
    third = np.exp(2j * np.pi / 3)
    assert semiring.annihilator([third, third.conj(), third * (1 + 1e-12)]) == (1, 1, 1)
    assert semiring.annihilator([-1, third, third.conj()]) == (1, 2, 2, 1)
    for n in (4, 5, 6, 12):
        assert semiring.annihilator(np.exp(2j * np.pi * np.arange(1, n) / n)) == (1,) * n


@pytest.mark.parametrize("values", [[1.0], [1j], [-0.5], [np.exp(0.3j), np.exp(-0.3j)]])
def test_annihilator_refuses_other_coefficients(values):
    with pytest.raises(jd.UsageError, match="non-negative integers alone, but the product of x - s over the"):
        semiring.annihilator(values)


@pytest.mark.parametrize("bad", [-1, True])
def test_counts_and_exponents_are_whole(bad, x64):
    x = semiring.one(parse("5"))
    with pytest.raises(jd.UsageError, match="a number of copies is a non-negative integer"):
        semiring.copies(x, bad)
    with pytest.raises(jd.UsageError, match="an exponent is a non-negative integer"):
        semiring.power(x, bad)
    with pytest.raises(jd.UsageError, match="non-negative integer"):
        semiring.polynomial(x, (1, bad))
