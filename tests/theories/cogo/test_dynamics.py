"""What CoGO predicts: carriers, shares of blocks and partial solutions, against minimisers and sums over nodes.

The semi-ring against NumPy loops, and the arguments that it refuses.

Spectra, potentials and the decomposed loss against NumPy written from the formulas.

Global solutions against plain NumPy.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.dynamics import semiring, solutions
from jaxdyn.theories.cogo.dynamics.semiring import Element
from jaxdyn.theories.cogo.potentials import partial_minimal_order as claims
from tests.theories.cogo.oracle import PLACES, W, angles, brute, composed, live, loss, nu, numbers, real_nodes, syn, turn, xi
from tests.theories.cogo.oracle import products as oracle_products
from tests.theories.cogo.oracle import weights as oracle_weights

# The sum of potentials under weight decay, against a minimiser.


def test_a_network_held_by_decay_has_the_predicted_diagonal(x64):
    group, decay = parse("5"), 2e-3
    start = composed(group, 2)

    def with_decay(flat):
        w = flat.reshape(start.shape)
        return model.loss_by_gram(w, group, "code") + decay / 2 * jnp.sum(w**2)

    both = jax.jit(jax.value_and_grad(with_decay))
    best = scipy.optimize.minimize(lambda x: [np.asarray(v) for v in both(x)], start.ravel(), jac=True, tol=1e-14)
    w = best.x.reshape(start.shape)
    assert np.abs(best.jac).max() < 1e-7
    z = np.fft.fft(w, axis=1)[:, 1:] / 5
    diagonal = 2 * 5 * np.sum(z[0] * z[1] * z[2].conj()).real
    norm = np.sum(w**2)
    predicted = solutions.diagonal_under_decay(group, decay, norm, best.fun - decay / 2 * norm)
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
        direct = loss(oracle_weights([{2: node} for node in columns.T], group), group)
        share = float(jnp.sum(jnp.square(solutions.residual(jnp.asarray(columns), 1.0, 1.0))))
        assert direct == pytest.approx(1 - 1 / 7 + 2 / 7 * (share - 1), rel=1e-10)


def test_search_ends_at_a_solution_of_order_four_without_bias(x64):
    rng = np.random.default_rng(0)
    start = jnp.asarray(0.7 * (rng.normal(size=(8, 3, 4)) + 1j * rng.normal(size=(8, 3, 4))))
    ends = jax.jit(jax.vmap(lambda x: solutions.solve(x, jnp.ones(4, bool), 0.0)))(start)
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
    columns = solutions.syn(), solutions.syn_ab(u, v), solutions.nu_nodes(u), solutions.xi_nodes(u), solutions.xi_nodes(u, True)
    tables = (
        solutions.syn_table(),
        solutions.syn_ab_table(u, v),
        solutions.nu_table(u),
        solutions.xi_table(u),
        solutions.xi_table(u, True),
    )
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
    np.testing.assert_allclose(solutions.xi_nodes(eighth), solutions.nu_nodes(eighth), atol=1e-15)
    np.testing.assert_allclose(solutions.syn_ab(jnp.asarray(1 + 0j), jnp.asarray(1 + 0j)), solutions.syn(), atol=1e-15)
    np.testing.assert_allclose(
        solutions.potentials(solutions.multiply(solutions.syn(), solutions.nu_nodes(eighth))), [6, *[0] * 9], atol=1e-14
    )


def test_embedded_columns_and_the_semi_ring_s_product_agree(x64):
    group = parse("7")

    @jax.jit
    def both(v):
        x, y = solutions.syn(), solutions.nu_nodes(v)
        product = semiring.multiply(solutions.embed(x, group, 3), solutions.embed(y, group, 3))
        joint = solutions.multiply(x, y)
        apart = semiring.distance(product, solutions.embed(joint, group, 3))
        return apart, claims.measured_potentials(product, group, 3), solutions.potentials(joint)

    apart, through_weights, direct = both(jnp.asarray(turn(0.7)))
    assert float(apart) < 1e-15
    np.testing.assert_allclose(through_weights, direct, atol=1e-14)


@pytest.mark.parametrize(("name", "k"), [("7", 0), ("7", 7), ("7", -1), ("4", 2), ("2x2", 1)])
def test_embedding_refuses_frequencies_without_a_partner(name, k, x64):
    with pytest.raises(jd.UsageError, match=f"k={k} is not allowed: the frequencies of {name} that come in pairs are"):
        solutions.embed(solutions.syn(), parse(name), k)


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
        return product, w, semiring.transform(w, group), semiring.energy(product)

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
        return jnp.stack(apart), semiring.order(less), semiring.potentials(less.z), semiring.distance(less, zero)

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
        return semiring.order(whole), semiring.potentials(whole.z)[1, 2, 3]

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


SPECTRUM_GROUPS = ("5", "2x2")
decomposed = jax.jit(semiring.loss, static_argnums=1)
over_pairs = jax.jit(model.loss, static_argnums=(1, 2))


def weights(seed, d, q=3):
    return np.random.default_rng(seed).normal(size=(3, d, q))


def transformed(w):
    """Cyclic groups alone, by the fast Fourier transform."""
    d = w.shape[1]
    return np.stack([np.fft.fft(w[0], axis=0) / d, np.fft.fft(w[1], axis=0) / d, np.conj(np.fft.fft(w[2], axis=0)) / d])


def direct_loss(w, group):
    """One pair and one node at a time."""
    d, total = group.order, 0.0
    for g, h in itertools.product(range(d), repeat=2):
        o = sum((w[0, g, j] + w[1, h, j]) ** 2 * w[2, :, j] for j in range(w.shape[2])) / (2 * d)
        error = o - np.eye(d)[group.add[g, h]]
        total += ((error - error.mean()) ** 2).sum() / d**2
    return total


def printed_loss(z, group):
    """The decomposition as it is printed, sum by sum, with no index of a or b at 0."""
    d, total = group.order, 0.0
    a, b, c = z

    def r(x, y, k):
        return (x * y * c[k]).sum()

    for k in range(1, d):
        part = -2 * r(a[k], b[k], k).real
        part += sum(abs(r(a[i], b[j], k)) ** 2 for i in range(1, d) for j in range(1, d))
        for m in range(d):
            pairs = [(i, group.add[m, group.negative[i]]) for i in range(1, d)]
            s = [sum(r(x[i], x[j], k) for i, j in pairs if j) for x in (a, b)]
            part += abs(s[0] + s[1]) ** 2 / 4 if m == 0 else (abs(s[0]) ** 2 + abs(s[1]) ** 2) / 4
        total += part
    return total / d + 1 - 1 / d


@pytest.mark.parametrize("d", [2, 5, 8])
def test_cyclic_transform_is_the_fast_one(x64, d):
    w = weights(0, d)
    z = semiring.transform(jnp.asarray(w), parse(str(d)))
    assert np.allclose(z, transformed(w), atol=1e-15)


@pytest.mark.slow
@settings(deadline=None, max_examples=9)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(SPECTRUM_GROUPS))
def test_real_weights_and_hermitian_spectra(seed, name):
    group = parse(name)
    w = weights(seed, group.order)
    with jax.enable_x64(True):
        z = semiring.transform(jnp.asarray(w), group)
        assert np.allclose(semiring.inverse(z, group), w, atol=1e-14)
        assert np.allclose(semiring.negated(z, group), z, atol=1e-15)
        assert np.isclose((w**2).sum(), group.order * (np.abs(z) ** 2).sum(), rtol=1e-13)
        other = semiring.transform(semiring.inverse(1j * z, group), group)
        assert np.allclose(other, 0, atol=1e-14)  # i times a Hermitian spectrum has no real part


@pytest.mark.parametrize("name", SPECTRUM_GROUPS)
def test_potentials_and_their_sums_one_by_one(x64, name):
    group = parse(name)
    d = group.order
    z = np.random.default_rng(1).normal(size=(3, d, 2, 2)) @ np.array([1, 1j])

    @jax.jit
    def potentials(z):
        auto = semiring.autopotentials(z)
        return semiring.potentials(z), auto, semiring.sums(auto, group)

    r, auto, s = map(np.asarray, potentials(z))
    for i, j, k in itertools.product(range(d), repeat=3):
        assert np.isclose(r[i, j, k], (z[0, i] * z[1, j] * z[2, k]).sum(), rtol=1e-12)
        assert np.isclose(auto[1, i, j, k], (z[1, i] * z[1, j] * z[2, k]).sum(), rtol=1e-12)
    for p, m, k in itertools.product(range(2), range(d), range(d)):
        other = [group.add[m, group.negative[i]] for i in range(d)]
        want = sum((z[p, i] * z[p, other[i]] * z[2, k]).sum() for i in range(d))
        assert np.isclose(s[p, m, k], want, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", SPECTRUM_GROUPS)
def test_decomposition_against_a_loop_over_pairs(x64, name):
    group = parse(name)
    w = weights(2, group.order)
    want = direct_loss(w, group)
    z = semiring.transform(jnp.asarray(w), group)
    assert np.isclose(decomposed(z, group), want, rtol=1e-12)
    assert np.isclose(over_pairs(jnp.asarray(w), group, "paper"), want, rtol=1e-12)
    dropped = decomposed(z.at[:2, 0].set(0), group)
    assert np.isclose(dropped, printed_loss(np.asarray(z), group), rtol=1e-12)  # so this is the printed form
    assert abs(dropped / want - 1) > 1e-3


def test_single_precision_stays_single(x64):
    group = parse("5")
    w = jnp.ones((3, 5, 2), jnp.float32)
    z = semiring.transform(w, group)
    assert z.dtype == jnp.complex64 and semiring.inverse(z, group).dtype == jnp.float32


def oracle_f46(group, carriers, n):
    """Nodes of F4/6 by the text: blocks, then the constants that the carriers add."""
    nodes, sixes, means = [], [], {}
    for i, k in enumerate(group.pairs):
        p1, p2 = np.asarray(n.phases[i])
        y = [np.array([turn(p1), turn(p2), turn(-p1 - p2)])]
        if carriers[i]:
            block = [v / 6 ** (1 / 3) for v in oracle_products(syn(), nu(complex(n.nu[i])), y)]
            sixes += (new := [{k: v} for v in block])
        else:
            block = [v / 4 ** (1 / 3) for v in oracle_products(nu(1j), xi(complex(n.xi[i])), y)]
            means[k] = 2 * sum((abs(v[0]) ** 2 + abs(v[1]) ** 2) * v[2] for v in block)
            new = [{k: v} for v in block]
        nodes += new
    size = sum(abs(v[p]) ** 2 for node in sixes for v in node.values() for p in (0, 1))
    for k, mean in means.items():
        for node in sixes:
            node[k] = np.array([0, 0, -mean / (2 * size)])
    return nodes + real_nodes(group)


@pytest.mark.parametrize("name", ["5", "7", "4", "2x4"])
def test_f6_is_the_text_s_and_has_zero_loss(name, x64):
    group = parse(name)
    n = numbers(0, group)
    nodes = []
    for k, v, phase in zip(group.pairs, np.asarray(n.nu), np.asarray(n.phases), strict=True):
        y = [turn(np.array([phase[0], phase[1], -phase.sum()]))]
        nodes += [{k: node / 6 ** (1 / 3)} for node in oracle_products(syn(), nu(v), y)]
    w = oracle_weights(nodes + real_nodes(group), group)
    x = jax.jit(lambda n: solutions.f6(group, n.nu, n.phases))(n)
    np.testing.assert_allclose(live(x, group), w, atol=1e-13)
    fit = jax.jit(lambda x: model.fit(semiring.weights(x, group), group))(x)
    assert loss(w, group) < 1e-27 and float(fit.loss) < 1e-27 and int(fit.wrong) == 0


@pytest.mark.thinned
@pytest.mark.parametrize(("name", "count"), [("5", 1), ("9", 1), ("9", 3), ("6", 1), ("3x3", 2)])
def test_f46_is_the_text_s_and_has_zero_loss(name, count, x64):
    group = parse(name)
    n = numbers(1, group)
    carriers = np.random.default_rng(2).permutation(len(group.pairs)) < count
    w = oracle_weights(oracle_f46(group, carriers, n), group)
    x = jax.jit(lambda c, n: solutions.f46(group, c, n.nu, n.xi, n.phases))(jnp.asarray(carriers), n)
    np.testing.assert_allclose(live(x, group), w, atol=1e-13)
    assert loss(w, group) < 1e-27
    pairs, real = len(group.pairs), len(group.real)
    assert int(np.sum(x.nodes)) == 6 * count + 4 * (pairs - count) + 2 * real
    assert np.sum(w**2) / group.order == pytest.approx(float(solutions.energy(pairs, count, real)), rel=1e-12)


def test_other_blocks_carry_and_are_carried_too(x64):
    group = parse("9")
    n = numbers(3, group)

    @jax.jit
    def nets(n):
        first = solutions.first(group, 2)
        sixes, fours = solutions.six_ab(n.alpha, n.beta, n.phases), solutions.four(n.xi, n.phases, twin=True)
        none = solutions.first(group, 0)
        return (
            solutions.carried(group, first, sixes, fours),
            solutions.f6_ab(group, n.alpha, n.beta, n.phases),
            solutions.compose(group, *solutions.mixed(first, sixes, fours)),
            solutions.f4(group, n.xi, n.phases),
            solutions.carried(group, none, sixes, fours),
        )

    carried, whole, bare, alone, nothing = nets(n)
    assert loss(live(carried, group), group) < 1e-27
    assert loss(live(whole, group), group) < 1e-27
    assert loss(live(bare, group), group) == pytest.approx(4 / 9 * 2, rel=1e-12)
    assert loss(live(alone, group), group) == pytest.approx(2 * 8 / 9, rel=1e-12)
    assert np.isnan(np.asarray(nothing.z)).any()


@pytest.mark.parametrize("name", ["5", "6", "2x2"])
def test_memory_has_a_node_for_each_pair(name, x64):
    group = parse(name)
    d = group.order
    every = range(1, d)
    chi = group.characters
    nodes = []
    for u, v in itertools.product(range(d), repeat=2):
        values = {k: np.array([chi[k, u], chi[k, v], chi[k, u].conj() * chi[k, v].conj()]) / d ** (2 / 3) for k in every}
        nodes.append({k: value / (1 if group.negative[k] == k else 2) for k, value in values.items()})  # both signs are listed
    w = oracle_weights(nodes, group)
    x = jax.jit(lambda: solutions.memory(group))()
    np.testing.assert_allclose(live(x, group), w, atol=1e-13)
    assert loss(w, group) < 1e-27
    assert np.sum(w**2) / d == pytest.approx(solutions.memory_energy(group), rel=1e-12)


def test_a_unit_turns_a_solution_into_a_solution(x64):
    group = parse("2x4")
    n = numbers(4, group)
    turned = jax.jit(lambda p: semiring.multiply(solutions.memory(group), solutions.unit_element(group, p)))(n.phases)
    assert loss(live(turned, group), group) < 1e-27


def test_f6_vmaps_over_its_numbers_and_the_number_of_carriers_may_be_traced(x64):
    group = parse("7")
    n = numbers(5, group)

    def made(count, nu):
        x = solutions.f46(group, solutions.first(group, count), nu, n.xi, n.phases)
        return model.fit(semiring.weights(x, group), group).loss, semiring.order(x), semiring.energy(x)

    found = jax.jit(jax.vmap(jax.vmap(made, (0, None)), (None, 0)))(jnp.arange(1, 4), jnp.stack([n.nu, n.alpha]))
    assert np.max(found[0]) < 1e-27
    np.testing.assert_array_equal(found[1], [[14, 16, 18]] * 2)
    np.testing.assert_allclose(found[2], [np.asarray(solutions.energy(3, jnp.arange(1, 4)))] * 2, rtol=1e-12)


def test_energy_formula_numbers(x64):
    assert [round(solutions.best_carriers(n), 1) for n in (11, 35, 63)] == [3.8, 6.8, 9.1]
    assert float(solutions.energy(11, 11)) == pytest.approx(11 * 10.903, rel=1e-4)
    assert float(solutions.energy(1, 1)) == pytest.approx(6 * 6 ** (1 / 3))
    group = parse("7")
    x = jax.jit(lambda nu, xi: solutions.f46(group, solutions.first(group, 1), nu, xi, jnp.zeros((3, 2))))(*numbers(0, group)[:2])
    delta = np.asarray(x.z)[2, group.pairs[1], 0]
    assert delta == pytest.approx(-(1 + 1j) / (2 * 6 ** (1 / 3))) and abs(delta) == pytest.approx(0.38914, abs=1e-5)


@pytest.mark.slow
def test_composing_refuses_another_number_of_blocks(x64):
    with pytest.raises(jd.UsageError, match="7 has 3 pairs of frequencies, each with a number of its own; got 2"):
        solutions.f6(parse("7"), jnp.ones(2, complex), jnp.zeros((2, 2)))
