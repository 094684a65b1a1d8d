"""Classification of weights against the rule written out with loops, and on networks whose parts are known."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import classify
from tests.theories.cogo.oracle import weights

W = np.exp(2j * np.pi / 3)
NAMES = classify.NAMES
PLAIN = jax.jit(classify.classify, static_argnums=1)
TWO, THREE = jax.jit(classify.order_two), jax.jit(classify.order_three)


def turned(rng):
    return np.exp(2j * np.pi * rng.random())


def nu(v):
    return np.array([[1, v], [1, -v], [1, -(np.conj(v) ** 2)]])


def xi(x, i=1j):
    return np.array([[1, x], [1, -i * np.conj(x)], [1, i]])


def syn(al=1, be=1):
    return np.array([[1, al * W, be / W], [1, W / al, 1 / (W * be)], [1, W, 1 / W]])


def product(*factors):
    z = factors[0]
    for f in factors[1:]:
        z = np.array([np.kron(a, b) for a, b in zip(z, f, strict=True)])
    return z


def block(rng, *factors):
    """The product at paper scale, turned by a unit node, its nodes in any order and of any sign."""
    z = product(*factors)
    z = z * z.shape[1] ** (-1 / 3)
    y1, y2 = turned(rng), turned(rng)
    z = z * np.array([y1, y2, 1 / (y1 * y2)])[:, None]
    z = z[:, rng.permutation(z.shape[1])]
    return z * np.where(rng.random(z.shape[1]) < 0.5, -1, 1) ** np.array([1, 1, 0])[:, None]


def network(rng, d, blocks, noise=0.0, dead=3):
    """Real weights (code scale) of a cyclic group with a block at every frequency 1, 2, ..., and dead nodes, all shuffled."""
    nodes = []
    for k, z in enumerate(blocks, 1):
        for column in z.T:
            spectrum = np.zeros((3, d), complex)
            spectrum[:, k], spectrum[:, -k] = column, column.conj()
            nodes.append(spectrum)
    z = np.stack([*nodes, *[np.zeros((3, d))] * dead], -1)
    g = np.arange(d)
    phi = np.exp(2j * np.pi * np.outer(g, g) / d)
    w = np.stack([phi @ z[0], phi @ z[1], phi.conj() @ z[2]])
    assert np.abs(w.imag).max() < 1e-12
    w = w.real / (2 * d) ** (1 / 3)
    return w[..., rng.permutation(w.shape[-1])] + noise * rng.normal(size=w.shape)


def rule(w, active=0.05, th=0.1):
    """The rule in loops. For each frequency: order, error, whether it factorises, and the names of both factors."""
    d = w.shape[1]
    z = np.fft.fft(w, axis=1) / d
    z[2] = z[2].conj()
    half = (d - 1) // 2
    members = {k: [] for k in range(half + 1)}
    for j in range(w.shape[2]):
        size = [abs(z[0, k, j]) for k in range(half + 1)]
        if max(size) > active:
            members[int(np.argmax(size))].append(j)
    return [factors(z[:, k, members[k]], th) for k in range(1, half + 1)]


def factors(f, th):
    n = f.shape[1]
    if n not in (4, 6):
        return n, None, False, ("none", "none")
    h, best, chosen = n // 2, np.inf, None
    for p in itertools.permutations(range(n)):
        rho = [f[2, p[j]] / f[2, p[j + h]] for j in range(h)]
        spread = np.linalg.norm(np.array(rho) - np.mean(rho))
        if spread < best - 1e-11:  # of equal ones the first
            best, chosen = spread, p
    g = f[:, list(chosen)].copy()
    t = g[0, h:] / g[0, :h]
    for j in range(h):
        if abs(t[j] - t[0]) > 0.2:
            g[:2, j] *= -1
    ratio = g[:, h:] / g[:, :h]
    err = np.linalg.norm(ratio - ratio.mean(1, keepdims=True))
    first = two(ratio.mean(1), th)
    second = two(g[:, 1] / g[:, 0], th) if n == 4 else three([g[:, 1] / g[:, 0], g[:, 2] / g[:, 0]], th)
    return n, err, err <= th * np.sqrt(3 * n), (first, second)


def normal(x):
    return x / np.prod(x) ** (1 / 3)


def two(x, th):
    a, b, c = normal(x)
    if abs(a * b * c - 1) > th:
        return "unnormalised"
    if min(abs(c - 1j), abs(c + 1j)) < th:
        return "xi"
    if abs(c - 1) < th and min(abs(a - 1j), abs(a + 1j)) < th:
        return "nu=i"
    return "nu" if abs(a + b) < th else "unknown"


def three(columns, th):
    x, y = (normal(c) for c in columns)
    for c in (x, y):
        if c[0].real > 0:
            c[:2] *= -1
    if x[2].imag < 0:
        x, y = x.conj(), y.conj()
    if np.linalg.norm(x - W) < th * 3**0.5 and np.linalg.norm(y - W.conjugate()) < th * 3**0.5:
        return "syn"
    return "syn,alpha,beta" if abs(x[2] - W) < th and abs(y[2] - W.conjugate()) < th else "unknown"


def ours(w, group, *args):
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, PLAIN(jnp.asarray(w), parse(group), *args))


def names(c, i):
    return NAMES[c.first.label[i]], NAMES[c.second.label[i]]


CASES = {  # blocks of known factors: order, names (any order for order 4), column of the published table
    "nu=i * xi": (lambda r: [nu(1j), xi(turned(r))], 4, {"nu=i", "xi"}, 0),
    "nu=-i * twin": (lambda r: [nu(-1j), xi(turned(r), -1j)], 4, {"nu=i", "xi"}, 0),
    "nu * syn": (lambda r: [nu(np.exp(1j * np.pi * 0.4)), syn()], 6, {"nu", "syn"}, 2),
    "nu=i * syn,alpha,beta": (lambda r: [nu(1j), syn(np.exp(0.9j), np.exp(-0.4j))], 6, {"nu=i", "syn,alpha,beta"}, 1),
    "nu * nu": (lambda r: [nu(np.exp(0.3j)), nu(np.exp(1.2j))], 4, {"nu"}, 3),
    "order 3": (lambda r: [syn()], 3, {"none"}, -1),
    "xi * syn": (lambda r: [xi(np.exp(0.3j)), syn()], 6, {"xi", "syn"}, 3),
}


@pytest.mark.parametrize("noise", [0.0, 1e-3])
@pytest.mark.parametrize("seed", [0, 1])
def test_known_networks_are_what_they_are(seed, noise):
    rng = np.random.default_rng(seed)
    w = network(rng, 15, [block(rng, *make(rng)) for make, *_ in CASES.values()], noise)
    c = ours(w, "15")
    for i, (title, (_, order, allowed, column)) in enumerate(CASES.items()):
        assert c.order[i] == order, title
        if noise and title == "nu=i * syn,alpha,beta" and not c.factorable[i]:
            assert c.least[i] < 0.05  # c cannot tell its pairings apart: only the error does
            continue
        if title == "xi * syn":  # with syn, c = i and c = i omega are one network, of which only the former is called xi
            assert names(c, i) in {("xi", "syn"), ("unknown", "syn")}
        else:
            assert set(names(c, i)) == allowed, title
        assert c.column[i] == column
        assert c.factorable[i] == (order in (4, 6))
        if order != 3:
            assert c.err[i] < (0.1 if noise else 1e-12)


def test_nu_i_with_syn_has_a_name_whichever_way_it_is_paired():
    rng = np.random.default_rng(5)
    c = ours(network(rng, 15, [block(rng, nu(1j), syn()) for _ in range(7)]), "15")
    assert c.factorable.all() and np.all(c.err < 1e-12)
    for i in range(7):  # i and omega i are one network: the former is nu=i with syn up to signs, the latter nu with syn
        assert names(c, i) in {("nu=i", "syn"), ("nu=i", "syn,alpha,beta"), ("nu", "syn")}


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), noise=st.sampled_from([1e-4, 2e-3, 6e-3]))
def test_equals_the_rule_in_loops(seed, noise):
    rng = np.random.default_rng(seed)
    kinds = [[nu(turned(rng)), syn()], [nu(1j), xi(turned(rng))], [nu(1j), syn(turned(rng), turned(rng))], [xi(turned(rng))]]
    w = network(rng, 9, [block(rng, *kind) for kind in kinds], noise)
    c = ours(w, "9")
    for i, (n, err, factorable, labels) in enumerate(rule(w)):
        assert c.order[i] == n
        assert c.factorable[i] == factorable
        if err is not None:
            assert c.err[i] == pytest.approx(err, rel=1e-9)
            assert c.least[i] <= c.err[i] * (1 + 1e-12)
            assert names(c, i) == labels
        else:
            assert np.isnan(c.err[i]) and names(c, i) == ("none", "none")


def test_random_groups_do_not_factorise_and_agree_with_the_loops():
    rng = np.random.default_rng(3)
    blocks = [rng.normal(size=(3, n)) + 1j * rng.normal(size=(3, n)) for n in (4, 6, 4, 6, 4, 6, 5)]
    w = network(rng, 15, blocks)
    c = ours(w, "15", 1e-4)
    assert list(c.order) == [4, 6, 4, 6, 4, 6, 5]
    assert not c.factorable.any() and np.all(c.column == -1)
    for i, (n, err, _, labels) in enumerate(rule(w, 1e-4)):
        if n != 5:
            assert c.err[i] == pytest.approx(err, rel=1e-9) and names(c, i) == labels


def test_distances_and_angles():
    rng = np.random.default_rng(0)
    x, v = np.exp(0.3j), np.exp(1j * np.pi * 0.4)
    al, be = np.exp(0.9j), np.exp(-0.4j)
    w = network(rng, 7, [product(nu(1j), xi(x)) / 4 ** (1 / 3), product(nu(v), syn()), product(nu(1j), syn(al, be))])
    c = ours(w, "7")
    one, other = c.first, c.second
    xi_angle = [f.angle[0] for f in (one, other) if NAMES[f.label[0]] == "xi"][0]
    assert np.cos(4 * xi_angle) == pytest.approx(np.cos(4 * 0.3), abs=1e-7)  # up to conjugation and powers of i
    assert np.cos(6 * one.angle[1]) == pytest.approx(np.cos(6 * np.pi * 0.4), abs=1e-7)  # conjugation, sign, powers of omega
    assert min(abs(one.c_one[1] - abs(np.conj(v * W**s) ** 2 + 1)) for s in range(3)) < 1e-7
    assert other.syn[1] < 1e-7 and other.phases[2] < 1e-7 and one.a_i[2] < 1e-7 and one.opposite[2] < 1e-7
    assert max(one.raw.max(), other.raw.max()) < 1e-6
    assert np.isnan(one.syn).all() and np.isnan(other.c_i[1:]).all() and not np.isnan(other.c_i[0])
    assert other.syn[2] > 0.3  # alpha and beta are not 1


def test_alpha_and_beta_are_those_of_the_definition():
    with jax.enable_x64(True):
        al, be = -np.exp(0.2j), -np.exp(-0.3j)  # a lies in the left half-plane only after the sign
        f = THREE(jnp.asarray(syn(al, be)[:, 1:]), 0.1)
    for angle, v in ((float(f.angle), al), (float(f.beta), be)):
        assert abs(np.sin(angle - np.angle(v))) < 1e-12
    assert NAMES[int(f.label)] == "syn,alpha,beta"


@pytest.mark.parametrize("inside", [True, False])
def test_thresholds(inside):
    edge = 0.1 * (0.999 if inside else 1.001)
    turn = 2 * np.arcsin(edge / 2)  # the chord |e^{i turn} - 1| is the edge
    with jax.enable_x64(True):

        def second(a, b):
            return NAMES[int(TWO(jnp.asarray([a, b, 1 / (a * b)]), 0.1).label)]

        half = 1j * np.exp(0.5j * turn)
        assert second(half, -half) == ("nu=i" if inside else "nu")  # |c - 1| is the edge
        c = 1j * np.exp(1j * turn)
        assert second(np.exp(0.3j), np.exp(-0.3j) / c) == ("xi" if inside else "unknown")
        away = np.exp(1j * (0.3 + turn))
        assert second(np.exp(0.3j), -away) == ("nu" if inside else "unknown")
        x = syn()[:, 1:].copy()
        x[0, 0], x[1, 0] = x[0, 0] * np.exp(1j * turn * 3**0.5 / 2**0.5), x[1, 0] * np.exp(-1j * turn * 3**0.5 / 2**0.5)
        far = np.linalg.norm(x[:, 0] - W)
        assert NAMES[int(THREE(jnp.asarray(x), far / 3**0.5 * (1.001 if inside else 0.999)).label)] == (
            "syn" if inside else "syn,alpha,beta"
        )


def test_activity_and_its_threshold():
    rng = np.random.default_rng(1)
    z = [block(rng, nu(1j), xi(turned(rng))), 0.2 * block(rng, nu(1j), xi(turned(rng)))]
    w = network(rng, 5, z)
    size = (8 * 5) ** (-1 / 3)
    assert list(ours(w, "5", 0.21 * size).order) == [4, 0] and list(ours(w, "5", 0.19 * size).order) == [4, 4]
    assert classify.active_threshold(parse("125")) == pytest.approx(0.05)
    assert classify.active_threshold(parse("5")) == pytest.approx(size / 2)


@pytest.mark.slow
def test_a_node_of_the_constant_character_belongs_to_no_pair(x64):
    w = jnp.zeros((3, 5, 2)).at[:, :, 0].set(1.0)
    found = classify.nodes(w, parse("5"))
    assert list(found.active) == [True, False] and list(found.owner) == [0, 0] and not found.member.any()
    assert list(PLAIN(w, parse("5")).order) == [0, 0]


def test_few_nodes_and_groups_with_real_characters():
    rng = np.random.default_rng(2)
    c = ours(rng.normal(size=(3, 8, 2)), "2x4")
    assert c.order.shape == (2,) and not c.factorable.any()


@pytest.mark.slow
def test_vmap_and_precision():
    rng = np.random.default_rng(4)
    many = np.stack([network(rng, 7, [block(rng, nu(turned(rng)), syn()) for _ in range(3)], 1e-3) for _ in range(3)])
    with jax.enable_x64(True):
        group, x = parse("7"), jnp.asarray(many)
        batch = jax.jit(jax.vmap(lambda w: classify.classify(w, group)))(x)
        single = [PLAIN(w, group) for w in x]
    for i, one in enumerate(single):
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(jax.tree.map(lambda leaf, i=i: leaf[i], batch)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    rough = PLAIN(jnp.asarray(many[0], jnp.float32), parse("7"))
    assert rough.err.dtype == jnp.float32 and rough.first.label.dtype == jnp.int32
    np.testing.assert_allclose(rough.err, batch.err[0], atol=2e-5)  # 100 roundings


@pytest.mark.slow
def test_a_split_without_jit_is_the_same():
    rng = np.random.default_rng(6)
    with jax.enable_x64(True):
        part = jnp.asarray(block(rng, nu(1j), xi(turned(rng))) * (1 + 0.01 * rng.normal(size=(3, 4))))
        plain, compiled = classify.factorised(part, 0.1), jax.jit(classify.factorised)(part, 0.1)
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(compiled), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_energies_are_squared_norms_by_frequency_small_nodes_included(x64):
    group = parse("7")
    rng = np.random.default_rng(3)
    freqs = [0, 1, 1, 3, 2, 1]
    z = rng.normal(size=(3, 6)) + 1j * rng.normal(size=(3, 6))
    z[:, 2] *= 1e-3
    w = weights([{k: z[:, j]} for j, k in enumerate(freqs)], group)
    split = classify.nodes(jnp.asarray(w), group)
    whole = np.abs(np.asarray(split.spectrum)) ** 2
    expected = [whole[..., [j for j, f in enumerate(freqs) if f == k]].sum() for k in (1, 2, 3)]
    np.testing.assert_allclose(classify.energies(split), expected, rtol=1e-12)
    assert int(split.order[0]) == 2  # the small one is none of its nodes
