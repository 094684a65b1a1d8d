"""Partial and global solutions against plain NumPy: loops over nodes, pairs and outputs."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo.claims import abelian, constructions, energy, orders, partial
from jaxdyn.theories.cogo.dynamics import orders as theory
from jaxdyn.theories.cogo.dynamics import partial as parts
from jaxdyn.theories.cogo.dynamics import semiring, solutions

W = np.exp(2j * np.pi / 3)
angles = st.floats(-3.1, 3.1)


def turn(angle):
    return np.exp(1j * angle)


def numbers(seed, group):
    """Free numbers from NumPy."""
    rng = np.random.default_rng(seed)
    n = len(group.pairs)
    unit = turn(rng.uniform(-np.pi, np.pi, (4, n)))
    return solutions.Numbers(*map(jnp.asarray, unit), jnp.asarray(rng.uniform(-np.pi, np.pi, (n, 2))))


def weights(nodes, group):
    """Real weights (3, d, q) of nodes, each a dict from frequency to its three values, by the sums of the definition."""
    w = np.zeros((3, group.order, len(nodes)))
    for j, node in enumerate(nodes):
        for k, values in node.items():
            for layer, value in enumerate(values):
                chi = group.characters[k] if layer < 2 else group.characters[k].conj()
                twice = 1 if group.negative[k] == k else 2  # k and -k together
                w[layer, :, j] += twice * (value * chi).real
    return w


def loss(w, group):
    """L in the paper's scale, one pair after the other."""
    d = group.order
    total = 0.0
    for g1, g2 in itertools.product(range(d), repeat=2):
        out = w[2] @ (w[0, g1] + w[1, g2]) ** 2 / (2 * d)
        out[group.add[g1, g2]] -= 1
        total += np.sum((out - out.mean()) ** 2)
    return total / d**2


def products(*factors):
    """Nodes of a product at one frequency."""
    return [np.prod(np.array(nodes), 0) for nodes in itertools.product(*factors)]


def syn():
    return [np.full(3, W**j) for j in range(3)]


def nu(v):
    return [np.ones(3), np.array([v, -v, -(np.conj(v) ** 2)])]


def xi(x):
    return [np.ones(3), np.array([x, -1j * np.conj(x), 1j])]


def real_nodes(group):
    return [{k: np.array([1, s, s]) / 2 ** (1 / 3)} for k in group.real for s in (1, -1)]


def oracle_f46(group, carriers, n):
    """Nodes of F4/6 by the text: blocks, then the constants that the carriers add."""
    nodes, sixes, means = [], [], {}
    for i, k in enumerate(group.pairs):
        p1, p2 = np.asarray(n.phases[i])
        y = [np.array([turn(p1), turn(p2), turn(-p1 - p2)])]
        if carriers[i]:
            block = [v / 6 ** (1 / 3) for v in products(syn(), nu(complex(n.nu[i])), y)]
            sixes += (new := [{k: v} for v in block])
        else:
            block = [v / 4 ** (1 / 3) for v in products(nu(1j), xi(complex(n.xi[i])), y)]
            means[k] = 2 * sum((abs(v[0]) ** 2 + abs(v[1]) ** 2) * v[2] for v in block)
            new = [{k: v} for v in block]
        nodes += new
    size = sum(abs(v[p]) ** 2 for node in sixes for v in node.values() for p in (0, 1))
    for k, mean in means.items():
        for node in sixes:
            node[k] = np.array([0, 0, -mean / (2 * size)])
    return nodes + real_nodes(group)


def live(x, group):
    w = np.asarray(jax.jit(lambda x: semiring.weights(x, group))(x))
    return w[..., np.asarray(x.nodes)]


@pytest.mark.parametrize("name", ["5", "7", "4", "2x4"])
def test_f6_is_the_text_s_and_has_zero_loss(name, x64):
    group = parse(name)
    n = numbers(0, group)
    nodes = []
    for k, v, phase in zip(group.pairs, np.asarray(n.nu), np.asarray(n.phases), strict=True):
        y = [turn(np.array([phase[0], phase[1], -phase.sum()]))]
        nodes += [{k: node / 6 ** (1 / 3)} for node in products(syn(), nu(v), y)]
    w = weights(nodes + real_nodes(group), group)
    x = jax.jit(lambda n: solutions.f6(group, n.nu, n.phases))(n)
    np.testing.assert_allclose(live(x, group), w, atol=1e-13)
    fit = jax.jit(lambda x: solutions.fit(x, group))(x)
    assert loss(w, group) < 1e-27 and float(fit.loss) < 1e-27 and int(fit.wrong) == 0


@pytest.mark.parametrize(("name", "count"), [("5", 1), ("9", 1), ("9", 3), ("6", 1), ("3x3", 2)])
def test_f46_is_the_text_s_and_has_zero_loss(name, count, x64):
    group = parse(name)
    n = numbers(1, group)
    carriers = np.random.default_rng(2).permutation(len(group.pairs)) < count
    w = weights(oracle_f46(group, carriers, n), group)
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
    w = weights(nodes, group)
    x = jax.jit(lambda: solutions.memory(group))()
    np.testing.assert_allclose(live(x, group), w, atol=1e-13)
    assert loss(w, group) < 1e-27
    assert np.sum(w**2) / d == pytest.approx(solutions.memory_energy(group), rel=1e-12)


def test_a_unit_turns_a_solution_into_a_solution(x64):
    group = parse("2x4")
    n = numbers(4, group)
    turned = jax.jit(lambda p: semiring.multiply(solutions.memory(group), solutions.unit(group, p)))(n.phases)
    assert loss(live(turned, group), group) < 1e-27


def test_f6_vmaps_over_its_numbers_and_the_number_of_carriers_may_be_traced(x64):
    group = parse("7")
    n = numbers(5, group)

    def made(count, nu):
        x = solutions.f46(group, solutions.first(group, count), nu, n.xi, n.phases)
        return solutions.fit(x, group).loss, semiring.order(x), semiring.energy(x)

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


def brute(z, signs, layers):
    total = 0j
    for j in range(z.shape[1]):
        total += np.prod([z[layer, j] if sign > 0 else np.conj(z[layer, j]) for layer, sign in zip(layers, signs, strict=True)])
    return total


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


PLACES = [
    ((1, 1, 1), (0, 1, 2)),
    ((-1, 1, 1), (0, 1, 2)),
    ((1, -1, 1), (0, 1, 2)),
    ((1, 1, -1), (0, 1, 2)),
    ((1, -1, 1), (0, 0, 2)),
    ((1, -1, 1), (1, 1, 2)),
    ((1, 1, 1), (0, 0, 2)),
    ((1, 1, 1), (1, 1, 2)),
    ((-1, -1, 1), (0, 0, 2)),
    ((-1, -1, 1), (1, 1, 2)),
]


def SYN_AB(a, b):  # noqa: N802
    return [np.ones(3), np.array([a * W, np.conj(a) * W, W]), np.array([b * W**2, np.conj(b) * W**2, W**2])]


def XI_TWIN(x):  # noqa: N802
    return [np.ones(3), np.array([x, 1j * np.conj(x), -1j])]


@jax.jit
def TABLES(u, v):  # noqa: N802
    columns = parts.syn(), parts.syn_ab(u, v), parts.nu(u), parts.xi(u), parts.xi(u, True)
    tables = parts.syn_table(), parts.syn_ab_table(u, v), parts.nu_table(u), parts.xi_table(u), parts.xi_table(u, True)
    return columns, tables


def test_special_numbers(x64):
    eighth = jnp.exp(1j * jnp.pi / 4)
    np.testing.assert_allclose(parts.xi(eighth), parts.nu(eighth), atol=1e-15)
    np.testing.assert_allclose(parts.syn_ab(jnp.asarray(1 + 0j), jnp.asarray(1 + 0j)), parts.syn(), atol=1e-15)
    np.testing.assert_allclose(parts.potentials(parts.multiply(parts.syn(), parts.nu(eighth))), [6, *[0] * 9], atol=1e-14)


def test_embedded_columns_and_the_semi_ring_s_product_agree(x64):
    group = parse("7")

    @jax.jit
    def both(v):
        x, y = parts.syn(), parts.nu(v)
        product = semiring.multiply(parts.embed(x, group, 3), parts.embed(y, group, 3))
        joint = parts.multiply(x, y)
        apart = semiring.distance(product, parts.embed(joint, group, 3))
        return apart, partial.found(product, group, 3), parts.potentials(joint)

    apart, through_weights, direct = both(jnp.asarray(turn(0.7)))
    assert float(apart) < 1e-15
    np.testing.assert_allclose(through_weights, direct, atol=1e-14)


@pytest.mark.parametrize(("name", "k"), [("7", 0), ("7", 7), ("7", -1), ("4", 2), ("2x2", 1)])
def test_embedding_refuses_frequencies_without_a_partner(name, k, x64):
    with pytest.raises(jd.UsageError, match=f"k={k} is not allowed: the frequencies of {name} that come in pairs are"):
        parts.embed(parts.syn(), parse(name), k)


def test_composing_refuses_another_number_of_blocks(x64):
    with pytest.raises(jd.UsageError, match="7 has 3 pairs of frequencies, each with a number of its own; got 2"):
        solutions.f6(parse("7"), jnp.ones(2, complex), jnp.zeros((2, 2)))


@settings(deadline=None, max_examples=5)
@given(st.integers(0, 2**20))
def test_residual_is_a_block_s_share_of_the_loss(seed):
    with jax.enable_x64(True):
        rng = np.random.default_rng(seed)
        columns = rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))
        group = parse("7")
        direct = loss(weights([{2: node} for node in columns.T], group), group)
        share = float(jnp.sum(jnp.square(theory.residual(jnp.asarray(columns), 1.0, 1.0))))
        assert direct == pytest.approx(1 - 1 / 7 + 2 / 7 * (share - 1), rel=1e-10)


def test_search_finds_a_solution_of_order_four_without_bias_and_says_what_it_found(x64):
    rng = np.random.default_rng(0)
    start = jnp.asarray(0.7 * (rng.normal(size=(8, 3, 4)) + 1j * rng.normal(size=(8, 3, 4))))
    found = jax.jit(jax.vmap(lambda x: theory.solve(x, jnp.ones(4, bool), 0.0)))(start)
    best = int(np.argmin(found.loss))
    z = np.asarray(found.columns)[best]
    values = [brute(z, *place) for place in PLACES]
    np.testing.assert_allclose([values[0], *values[1:4], *values[6:]], [1, *[0] * 7], atol=1e-12)
    assert float(found.energy[best]) == pytest.approx(2 * np.sum(np.abs(z) ** 2), rel=1e-12)
    assert float(found.loss[best]) < 1e-20


def distorted(claim, ds, **changes):
    return not all(c.passed for c in claim.judge(ds.assign({k: f(ds[k]) for k, f in changes.items()})))


def test_judges_of_the_constructions_reject_distortions_and_every_control_is_far_off():
    six, mixed, alone, _, _ = constructions.CLAIMS
    ds = jd.sweep(constructions.trial, jd.grid(constructions.Modular, groups=("7",)), seeds=2)
    printed, ds = ds.sel(form="printed"), ds.sel(form="derived")
    for claim, name in ((six, "energy"), (mixed, "bare"), (alone, "alone"), (six, "nodes")):
        assert all(c.passed for c in claim.judge(ds))
        assert distorted(claim, ds, **{f"predicted_{name}": lambda v: 1.1 * v})
    assert distorted(six, ds, loss=lambda v: v + 1e-19)
    assert not all(c.passed for c in alone.judge(printed))
    for claim in (six, mixed):
        for control in claim.controls.values():
            assert float(claim.judge(control.breach(ds))[0].value) > 0.1


def test_judges_of_small_groups_reject_distortions():
    groups, sufficient = abelian.CLAIMS
    ds = jd.sweep(abelian.trial, jd.grid(abelian.Small, groups=("5", "2x2")), seeds=2)
    for claim, name in ((groups, "omitted"), (sufficient, "hidden"), (sufficient, "target")):
        assert all(c.passed for c in claim.judge(ds))
        assert distorted(claim, ds, **{f"predicted_{name}": lambda v: 1.1 * v})
        for control in claim.controls.values():
            assert not all(c.passed for c in claim.judge(control.breach(ds)))
    np.testing.assert_allclose(ds.measured_omitted.sel(group="2x2"), 3 / 4, rtol=1e-12)


def test_judges_of_partial_solutions_reject_distortions():
    table, star, poly = partial.CLAIMS
    ds = jd.sweep(partial.trial, jd.grid(partial.Node), seeds=4)
    printed, ds = ds.sel(form="printed"), ds.sel(form="derived")
    for claim, name in ((table, "table"), (poly, "poly")):
        assert not distorted(claim, ds)
        assert distorted(claim, ds, **{f"predicted_{name}": lambda v: 1.1 * v})
    assert not all(c.passed for c in star.judge(printed))
    assert not all(c.passed for c in table.judge(table.controls["all of R_* for every nu"].breach(ds)))


def test_judge_of_the_energy_rejects_distortions():
    (claim,) = energy.CLAIMS
    ds = jd.sweep(energy.trial, jd.grid(energy.Carriers, groups=("7",)), seeds=2)
    assert not distorted(claim, ds)
    assert distorted(claim, ds, predicted_energy=lambda v: 1.1 * v)
    assert distorted(claim, ds, loss=lambda v: v + 1e-19)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: constructions.Modular(groups=()), "at least one group is needed"),
        (lambda: constructions.Modular(groups=("5", "6")), "groups=6 is not allowed here: groups have an odd order of at least 5"),
        (lambda: constructions.Memory(groups=("5x",)), "group='5x' is not allowed"),
        (lambda: abelian.Small(groups=("5", "7")), "one has two pairs of frequencies, and one an even order"),
        (lambda: energy.Carriers(groups=("5",)), "odd order of at least 7"),
        (lambda: orders.Search(starts=0), "starts and steps are at least 1, and spread is positive, got starts=0"),
        (lambda: partial.Node(modulus=0.0), "modulus=0.0 is not allowed"),
        (lambda: partial.Node(group="2x2", frequency=1), "come in pairs are none"),
    ],
)
def test_settings_refuse_in_one_sentence(make, message):
    with pytest.raises(jd.UsageError, match=message):
        make()
