"""Global solutions against plain NumPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.dynamics import semiring, solutions
from tests.theories.cogo.oracle import live, loss, nu, numbers, products, real_nodes, syn, turn, weights, xi


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
    fit = jax.jit(lambda x: model.fit(semiring.weights(x, group), group))(x)
    assert loss(w, group) < 1e-27 and float(fit.loss) < 1e-27 and int(fit.wrong) == 0


@pytest.mark.thinned
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
