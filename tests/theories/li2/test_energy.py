"""The energy of a node, its ascent, what it reconstructs and keeps: dense algebra, finite differences and solvers as oracles."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import flow
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ascent, energy
from jaxdyn.theories.li2.dynamics import reconstruct as theory
from jaxdyn.theories.li2.dynamics import retention as retention_theory
from tests.theories.li2.helpers import NODE_SIGMA, dense, oracle

value_and_gradient = jax.jit(energy.value_and_gradient, static_argnums=(1, 2))


energy_of = jax.jit(energy.energy, static_argnums=(1, 2))


random_maximum = jax.jit(energy.random_maximum, static_argnums=(1, 2, 3))


random_member = jax.jit(energy.random_member, static_argnums=(1, 2, 3))


terms = jax.jit(energy.terms, static_argnums=1)


@pytest.mark.usefixtures("x64")
@pytest.mark.thinned
@pytest.mark.parametrize("kind", NODE_SIGMA)
@pytest.mark.parametrize("name", ["5", "S3"])
def test_energy_and_gradient_are_those_of_the_dense_definition(name, kind):
    group, rng = parse(name), np.random.default_rng(0)
    w = rng.normal(size=(2 * group.order, 3))
    for mask in (None, (rng.random((group.order, group.order)) < 0.6) * 1.0):
        e, g = value_and_gradient(jnp.asarray(w), group, kind, mask=None if mask is None else jnp.asarray(mask))
        expected = oracle(w, *dense(group, mask), kind)
        # sums of tens of terms of size one to hundreds; linear nodes on all pairs have no energy at all
        np.testing.assert_allclose(e, expected[0], rtol=1e-11, atol=1e-24)
        np.testing.assert_allclose(g, expected[1], rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(energy_of(jnp.asarray(w), group, kind, None if mask is None else jnp.asarray(mask)), e)


@pytest.mark.usefixtures("x64")
def test_a_residual_takes_the_place_of_the_targets():
    group, rng = parse("S3"), np.random.default_rng(1)
    w, q = rng.normal(size=(12, 2)), rng.normal(size=(6, 6))
    x, y = dense(group)
    r = (y @ q).T @ (x @ w) ** 2
    e, g = value_and_gradient(jnp.asarray(w), group, residual=jnp.asarray(q))
    np.testing.assert_allclose(e, (r**2).sum(0) / 2, rtol=1e-12)
    np.testing.assert_allclose(g, x.T @ (2 * (x @ w) * (y @ q @ r)), rtol=1e-11)


@pytest.mark.usefixtures("x64")
@settings(deadline=None, max_examples=4)
@given(name=st.sampled_from(["7", "S3"]), seed=st.integers(0, 2**31))
def test_the_energy_is_homogeneous_and_no_translation_by_a_central_element_matters(name, seed):
    with jax.enable_x64(True):
        group = parse(name)
        u, v = np.random.default_rng(seed).normal(size=(2, group.order, 1))
        w = np.asarray(energy.join(jnp.asarray(u), jnp.asarray(v), group))
        e, g = (np.asarray(x) for x in value_and_gradient(w, group))
        np.testing.assert_allclose(np.sum(w * g, 0), 4 * e, rtol=1e-12)
        np.testing.assert_allclose(energy_of(2 * w, group), 16 * e, rtol=1e-12)
        # z(h) -> z(ch): translating u by any element permutes the classes
        moved = energy.join(jnp.asarray(u[group.table[group.order - 1]]), jnp.asarray(v), group)
        np.testing.assert_allclose(energy_of(moved, group), e, rtol=1e-12)


@pytest.mark.usefixtures("x64")
def test_split_undoes_join_and_the_node_sees_u_at_one_and_v_at_the_inverse_of_the_other():
    group, rng = parse("S3"), np.random.default_rng(2)
    u, v = rng.normal(size=(2, 6, 2))
    w = energy.join(jnp.asarray(u), jnp.asarray(v), group)
    assert all(np.array_equal(a, b) for a, b in zip(energy.split(w, group), (u, v), strict=True))
    x = model.preactivations(w, model.pairs(6)).reshape(6, 6, 2)
    for a, b in [(1, 4), (3, 3), (5, 2)]:
        np.testing.assert_allclose(x[a, b], u[a] + v[int(group.inverse[b])])


@pytest.mark.usefixtures("x64")
def test_the_terms_of_a_cyclic_group_are_products_of_plain_fourier_coefficients():
    group, rng = parse("7"), np.random.default_rng(3)
    irreps = decompose(group)
    u, v = rng.normal(size=(2, 7))
    w = energy.join(jnp.asarray(u[:, None]), jnp.asarray(v[:, None]), group)
    # z(h) = 2 sum_b u(h + b) v(b) + const; sum_h |z|^2 = sum_k |fft z|^2 / 7
    shares = np.abs(2 * np.fft.fft(u) * np.fft.fft(v).conj()) ** 2 / 14
    found = np.asarray(terms(w, irreps))[0]
    np.testing.assert_allclose(np.sort(found[1:]), np.sort(shares[1:]), rtol=1e-11)
    assert found[0] == 0


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["S3", "Q8", "A4", "F7:3"])
def test_the_terms_are_the_class_sums_parts(name):
    group, rng = parse(name), np.random.default_rng(4)
    irreps = decompose(group)
    w = rng.normal(size=(2 * group.order, 2))
    x, y = dense(group)
    z = y.T @ (x @ w) ** 2
    for k in range(1, len(irreps)):
        chi, d = irreps.characters[k], irreps.degrees[k]
        projector = np.array(
            [[chi[group.table[i, group.inverse[j]]].conj() for j in range(group.order)] for i in range(group.order)]
        )
        expected = (np.abs(projector * d / group.order @ z) ** 2).sum(0) / 2
        np.testing.assert_allclose(terms(jnp.asarray(w), irreps)[:, k], expected, rtol=1e-10)


@pytest.mark.usefixtures("x64")
def test_the_trace_that_is_printed_is_not_the_energy():
    """S3: u, v in the two-dimensional irrep."""
    irreps = decompose(parse("S3"))
    u, v = (random_member(jax.random.key(i), irreps, 2, 1) for i in (0, 1))
    w = energy.join(u, v, irreps.group)
    c = irreps.matrices[2]
    a, b = (np.sqrt(2 / 6) * np.einsum("gab,g->ab", c.conj(), np.asarray(f)[:, 0]) for f in (u, v))
    true = float(energy_of(w, irreps.group)[0])
    np.testing.assert_allclose(true, 6 / 4 * np.linalg.norm(2 * a @ b.conj().T) ** 2, rtol=1e-12)
    assert abs(6 / 4 * abs(np.trace(2 * a @ b.conj().T)) ** 2 / true - 1) > 0.1


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("8", [("complex", 1, 2.0, 2)] * 3 + [("real", 1, 4.0, 0)]),
        ("S3", [("real", 1, 3.0, 0), ("real", 2, 1.5, 3)]),
        ("Q8", [("real", 1, 4.0, 0)] * 3 + [("quaternionic", 2, 1.0, 6)]),
        ("SL2:3", [("complex", 1, 6.0, 2), ("quaternionic", 2, 3.0, 6), ("complex", 2, 3.0, 8), ("real", 3, 4.0, 6)]),
    ],
)
def test_peaks_of_known_groups(name, expected):
    peaks = energy.peaks(decompose(parse(name)))
    assert [p[1:] for p in peaks] == expected


@pytest.mark.usefixtures("x64")
@pytest.mark.thinned
@pytest.mark.parametrize("name", ["8", "Q8", "SL2:3", "Q8xS3"])
def test_random_maxima_are_stationary_with_the_value_and_dimension_of_their_peak(name):
    irreps = decompose(parse(name))
    group = irreps.group
    top = jax.jit(lambda w: ascent.top(w, group))
    for peak in energy.peaks(irreps):
        if name == "Q8xS3" and peak.degree < 4:
            continue  # the one quaternionic irrep of degree 4 is what this group is for
        for k in peak.irreps:
            w = np.asarray(random_maximum(jax.random.key(k), irreps, k, 2))
            np.testing.assert_allclose(np.linalg.norm(w, axis=0), 1, rtol=1e-12)
            np.testing.assert_allclose(np.sum(np.square(energy.split(w, group)), 1), 0.5, rtol=1e-12)
            e, g = (np.asarray(x) for x in value_and_gradient(w, group))
            np.testing.assert_allclose(e, peak.energy, rtol=1e-11)
            np.testing.assert_allclose(g, 4 * e * w, atol=1e-11 * group.order)
        end = top(w)
        assert np.all(end.zeros == peak.dimension) and np.all(end.largest < 1e-9)


@pytest.mark.usefixtures("x64")
def test_members_of_an_irrep_have_norm_and_place_but_less_energy():
    irreps = decompose(parse("A4"))
    k = int(np.argmax(irreps.degrees))
    u = random_member(jax.random.key(0), irreps, k, 5)
    mass = energy.masses(u, irreps)
    np.testing.assert_allclose(mass[:, k], 0.5, rtol=1e-12)
    e = energy_of(energy.join(u, u, irreps.group), irreps.group)
    s = np.linalg.svd(np.sqrt(3 / 12) * np.einsum("gab,gn->nab", irreps.matrices[k], u), compute_uv=False)
    np.testing.assert_allclose(e, 2 * 12 / 3 * (s**4).sum(1), rtol=1e-12)
    assert np.all(e < 0.999 * 2.0)


@pytest.mark.usefixtures("x64")
def test_maxima_of_every_group_are_those_that_are_predicted_for_merged_irreps():
    assert [len(p.irreps) for p in energy.peaks(decompose(parse("A4")))] == [2, 1]


directions = jax.jit(ascent.directions, static_argnums=(1, 2, 3, 4))
ascend = jax.jit(ascent.ascend, static_argnums=(1, 2), static_argnames=("steps", "block"))
ascend_spectra = jax.jit(ascent.ascend_spectra, static_argnums=1, static_argnames=("steps", "block"))
curvatures = jax.jit(ascent.curvatures, static_argnums=1)


@pytest.mark.usefixtures("x64")
def test_the_hessian_on_the_sphere_is_that_of_finite_differences():
    group, rng = parse("S3"), np.random.default_rng(5)
    w = rng.normal(size=12)
    w /= np.linalg.norm(w)
    x, y = dense(group)
    basis = np.linalg.svd(w[None])[2][1:]  # the tangent space

    def along(t):
        """The gradient on the sphere at the point reached from w along a great circle."""
        size = np.linalg.norm(t)
        p = np.cos(size) * w + np.sin(size) * t / size
        g = oracle(p[:, None], x, y, "square")[1][:, 0]
        return g - p * (p @ g)

    h = 1e-5
    hessian = np.array([(along(h * b) - along(-h * b)) @ basis.T / (2 * h) for b in basis])
    along_w = w @ oracle(w[:, None], x, y, "square")[1][:, 0]
    values = curvatures(jnp.asarray(w[:, None]), group)[0]
    expected = np.sort([*np.linalg.eigvalsh((hessian + hessian.T) / 2), -along_w])
    np.testing.assert_allclose(values, expected, atol=1e-7)


@pytest.mark.usefixtures("x64")
def test_nodes_do_not_act_on_each_other_and_jit_changes_nothing():
    group = parse("Q8")
    ways = directions(jax.random.key(0), group, 4, 2)
    together = ascent.climb(ways, group, steps=60)
    compiled = jax.jit(lambda x: ascent.climb(x, group, steps=60))
    alone = jnp.concatenate([compiled(ways[:, :, i : i + 1]) for i in range(4)], 1)
    np.testing.assert_allclose(together, alone, atol=1e-9)  # 120 steps, each of which amplifies rounding by a little
    jitted = compiled(ways)
    np.testing.assert_allclose(together, jitted, atol=1e-9)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("kind", ["square", "silu"])
def test_an_ascent_climbs_and_stays_on_the_sphere(kind):
    group = parse("S3")
    w = directions(jax.random.key(1), group, 8)[0]
    step = jax.jit(lambda w: ascent.ascend(w, group, kind, steps=2, step=0.2))
    for _ in range(12):
        after = step(w)
        assert np.all(energy_of(after, group, kind) >= energy_of(w, group, kind) - 1e-13)
        np.testing.assert_allclose(np.linalg.norm(after, axis=0), 1, rtol=1e-12)
        w = after


@pytest.mark.usefixtures("x64")
def test_a_node_without_gradient_stays_where_it_is():
    group = parse("5")
    w = directions(jax.random.key(2), group, 2)[0]
    dead = -jnp.abs(w)
    np.testing.assert_allclose(ascent.ascend(dead, group, "relu", steps=3), dead, rtol=1e-14)


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
def test_the_flow_agrees_with_scipy_and_ends_where_small_steps_end():
    group = parse("S3")
    w = directions(jax.random.key(3), group, 2)[0]
    found = jax.jit(lambda w: ascent.follow(w, group, np.array([0.0, 0.5, 40.0])))(w)
    x, y = dense(group)

    def field(t, flat):
        p = flat.reshape(12, 2)
        g = oracle(p, x, y, "square")[1]
        return ((g - p * (p * g).sum(0)) / 6).ravel()

    expected = scipy.integrate.solve_ivp(field, (0, 0.5), np.asarray(w).ravel(), rtol=1e-10, atol=1e-12).y[:, -1].reshape(12, 2)
    np.testing.assert_allclose(found.ys[1], expected, atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(found.ys, axis=1), 1, atol=1e-7)
    ends = ascend(w, group, steps=6000, step=0.01)
    np.testing.assert_allclose(ends, found.ys[2], atol=1e-2)  # Euler's polygon of steps 0.01
    np.testing.assert_allclose(energy_of(ends, group), energy_of(found.y_end, group), rtol=1e-6)


@pytest.mark.usefixtures("x64")
@pytest.mark.thinned
@pytest.mark.parametrize("name", ["8", "S3", "SL2:3"])
def test_steps_by_spectra_are_the_same_steps(name):
    """Irreps of every type; five nodes in blocks of two."""
    group = parse(name)
    w = directions(jax.random.key(4), group, 5)[0]
    plain = ascend(w, group, steps=30, block=2)
    np.testing.assert_allclose(plain, ascend(w, group, steps=30), atol=1e-10)
    np.testing.assert_allclose(ascend_spectra(w, decompose(group), steps=30, block=2), plain, atol=1e-10)


def test_steps_stay_in_single_precision(x64):
    group = parse("S3")
    w = directions(jax.random.key(5), group, 2, 1, "float32")[0]
    for climb in (lambda w: ascent.ascend(w, group, steps=2), lambda w: ascent.ascend_spectra(w, decompose(group), steps=2)):
        jaxpr = str(jax.make_jaxpr(climb)(w))
        assert "f64[12" not in jaxpr and climb(w).dtype == jnp.float32


LAYERS = {"complex": theory.conjugates, "coefficients": theory.coefficients, "maxima": theory.maxima, "tied": theory.tied}


def made(layer, name, seed=0):
    """Pairs of a layer on one group, by sectors."""
    found = (decompose(parse(name)),)
    for i, sectors in enumerate(theory.sectors(found, real=layer in ("maxima", "tied"))):
        shape = theory.draws(layer, sectors)
        normal = jax.random.normal(jax.random.fold_in(jax.random.key(seed), i), shape, jnp.float64)
        pair = jax.jit(lambda normal, sectors=sectors: LAYERS[layer](normal, sectors))(normal)
        yield sectors, *(np.asarray(x) for x in pair)


def reconstruct_dense(u, v, name):
    """Squared residual of the least squares top layer on all pairs of elements, from the nodes themselves."""
    group = parse(name)
    m = group.order
    second = v[group.inverse]
    x = np.concatenate([(u[:, None] + second[None]) ** 2, (u[:, None] - second[None]) ** 2], 2).reshape(m * m, -1)
    y = np.eye(m)[group.table.ravel()]
    x, y = x - x.mean(0), y - y.mean(0)
    left = y - x @ np.linalg.lstsq(x, y, rcond=1e-9)[0]
    return np.sum(np.abs(left) ** 2) / np.sum(y**2)


def joined(layer, name):
    parts = list(made(layer, name))
    u, v = (np.concatenate([np.concatenate(list(part[axis]), 1) for part in parts], 1) for axis in (1, 2))
    return u, v, parts


@pytest.mark.thinned
@pytest.mark.parametrize("name", ["5", *(pytest.param(name, marks=pytest.mark.slow) for name in ("S3", "Q8"))])
@pytest.mark.parametrize("layer", theory.LAYERS)
def test_the_layers_against_dense_least_squares_on_all_nodes(x64, layer, name):
    u, v, parts = joined(layer, name)
    found = parts[0][0].decomposed

    @jax.jit
    def whole(pairs):
        """The network of all sectors."""
        layers = ((u, v, theory.solve(u, v, s)[0], s) for (u, v), (s, _, _) in zip(pairs, parts, strict=True))
        return theory.by_product(sum(theory.outputs(*layer) for layer in layers), found)

    mean, rest = (np.asarray(x) for x in whole([part[1:] for part in parts]))
    m = found[0].group.order
    ours = float(np.sum(np.square(mean[0] - np.eye(m) + 1 / m)) / (m - 1) + rest[0])
    np.testing.assert_allclose(ours, reconstruct_dense(u, v, name), atol=1e-20, rtol=1e-9)
    if layer == "tied":
        inverses = parse(name).inverse
        np.testing.assert_allclose(ours, np.sum(inverses != np.arange(m)) / (2 * m - 2), rtol=1e-9)
    else:
        assert ours < 1e-24


@pytest.mark.parametrize("layer", ["complex", "maxima"])
def test_what_a_missing_pair_costs(x64, layer):
    u, v, parts = joined(layer, "S3")
    cost = jax.jit(lambda pairs: [theory.solve(*pair, s)[1].ravel() for pair, (s, _, _) in zip(pairs, parts, strict=True)])
    costs = np.concatenate(cost([part[1:] for part in parts]))
    for i in (0, 5):
        np.testing.assert_allclose(reconstruct_dense(np.delete(u, i, 1), np.delete(v, i, 1), "S3"), costs[i], rtol=1e-6)


@pytest.mark.thinned
@pytest.mark.parametrize("name", ["7", "S3", "A4", "SL2:3", "F7:3", "Q8xS3"])
def test_the_counts_of_maxima_are_the_dimensions_of_what_they_span(x64, name):
    """Twice as many pairs have the rank that is claimed: also for quaternionic type of degree 4."""
    irreps = decompose(parse(name))
    for peak in energy.peaks(irreps):
        n = theory.count("maxima", peak.kind, peak.degree)
        draw = jax.jit(lambda key, k=peak.irreps[0], n=n: energy.random_maximum(key, irreps, k, n + 20))
        u, v = energy.split(np.asarray(draw(jax.random.key(1))), irreps.group)
        gram = (u.T @ u) * (v.T @ v)
        values = np.linalg.eigvalsh(gram)[::-1]
        assert values[n - 1] > 1e-9 * values[0] and (values[n:] < 1e-12 * values[0]).all(), peak


def test_maxima_have_the_energy_of_maxima(x64):
    u, v, parts = joined("maxima", "SL2:3")
    irreps = parts[0][0].decomposed[0]
    levels = {p.irreps: p.energy for p in energy.peaks(irreps)}
    expected = np.concatenate([np.repeat(levels[numbers], u.shape[-1]) for s, u, _ in parts for _, numbers in s.places])
    found = jax.jit(lambda u, v: energy.energy(energy.join(u, v, irreps.group), irreps.group))(u, v)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_subspaces_are_those_of_the_irreps_and_targets_are_permutations(x64):
    found = (decompose(parse("F7:3")), decompose(parse("S3")))
    for sectors in theory.sectors(found, real=False):
        for basis, (i, (k,)) in zip(sectors.basis, sectors.places, strict=True):
            m = found[i].group.order
            np.testing.assert_allclose((basis @ basis.conj().T)[:m, :m], found[i].projector(k), atol=1e-12)
            assert not basis[m:].any()
        targets = sectors.targets(sectors.basis.conj())
        for basis, target, (i, (k,)) in zip(sectors.basis, targets, sectors.places, strict=True):
            group = found[i].group
            one = np.zeros((group.order, group.order))
            one[group.table[4], np.arange(group.order)] = 1
            part = basis[: group.order] @ target[:, 4].reshape(2 * (basis.shape[1],)) @ basis[: group.order].conj().T
            np.testing.assert_allclose(part, found[i].projector(k) @ one, atol=1e-12)


def test_coefficients_lie_in_the_subspace(x64):
    for sectors, u, v in made("coefficients", "F7:3"):
        inside = np.einsum("smr,snr->smn", sectors.basis, sectors.basis.conj())
        np.testing.assert_allclose(inside @ u, u, atol=1e-12)
        np.testing.assert_allclose(inside.conj() @ v, v, atol=1e-12)


def test_unknown_layers_are_refused():
    with pytest.raises(ValueError, match="none of"):
        theory.count("random", "real", 1)


RIDGE = 1e-3


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def chosen(order, n, count, key):
    """Masks of n pairs."""
    return retention_theory.random_order(key, order, count) < n


def subsets(name, n, count=2, number=0):
    group = parse(name)
    mask = chosen(group.order, n, count, jax.random.key(number))
    return group, mask, jax.random.normal(jax.random.key(number + 1), (2 * group.order, count), jnp.float64)


def climbed(group, kind):
    """Energy and gradient as one program."""
    return jax.jit(
        lambda w, mask: retention_theory.value_and_gradient(
            w, retention_theory.tables(group), retention_theory.make_data(mask, retention_theory.tables(group), kind, RIDGE)
        )
    )


def flowed(group, kind, steps, step):
    """The flow as one program."""
    return jax.jit(
        lambda w, mask: retention_theory.flow(
            w,
            retention_theory.tables(group),
            retention_theory.make_data(mask, retention_theory.tables(group), kind, RIDGE),
            steps,
            step,
        )
    )


def retention_dense(group, mask, kind, w):
    """The energy of one subset and its gradient from the definition: n by n matrices."""
    rows = np.argwhere(np.asarray(mask) > 0)
    y = np.eye(group.order)[group.table[rows[:, 0], rows[:, 1]]]
    n = len(rows)
    centring = np.eye(n) - 1 / n
    b = centring
    if kind == "whitened":
        shared = (rows[:, None] == rows[None]).sum(-1)
        b = np.linalg.inv(centring @ (4 + 2 * shared**2) @ centring + RIDGE * np.eye(n))

    places = rows + [0, group.order]
    u, v = w[places.T]
    f, slopes = (2 * u * v, (2 * v, 2 * u)) if kind == "cross" else ((u + v) ** 2, (2 * (u + v),) * 2)
    left = (centring @ y).T @ b
    gradient = np.zeros_like(w)
    np.add.at(gradient, places.T, left.T @ left @ f * slopes)
    return np.sum(np.square(left @ f)) / 2, gradient


@pytest.mark.thinned
@pytest.mark.parametrize("kind", retention_theory.OBJECTS)
@pytest.mark.parametrize(("name", "n"), [("5", 13), ("S3", 20), ("S3", 36)])
def test_energy_and_gradient_against_dense_matrices(x64, kind, name, n):
    group, mask, w = subsets(name, n)
    e, g = climbed(group, kind)(w, mask)
    for i in range(w.shape[1]):
        value, gradient = retention_dense(group, mask[..., i], kind, np.asarray(w[:, i]))
        np.testing.assert_allclose(e[i], value, rtol=1e-8)
        np.testing.assert_allclose(g[:, i], gradient, atol=1e-8 * np.abs(gradient).max())


def test_the_whole_energy_is_that_of_partial_data(x64):
    group, mask, w = subsets("S3", 22)
    e, g = climbed(group, "plain")(w, mask)
    whole = jax.jit(lambda w, mask: energy.value_and_gradient(w, group, mask=mask))
    for i in range(w.shape[1]):
        value, gradient = whole(w[:, i : i + 1], mask[..., i])
        np.testing.assert_allclose(e[i], value[0], rtol=1e-12)
        np.testing.assert_allclose(g[:, i], gradient[:, 0], atol=1e-12)


@pytest.mark.thinned
@pytest.mark.parametrize("kind", retention_theory.OBJECTS)
@pytest.mark.parametrize(("name", "k"), [("5", 1), ("S3", 2)])
def test_all_pairs_keep_every_maximum(x64, kind, name, k):
    irreps = decompose(parse(name))
    group = irreps.group
    w = random_maximum(jax.random.key(3), irreps, k, 4)
    end = flowed(group, kind, 20, 0.4)(w, jnp.ones((group.order, group.order, 4), jnp.float64))
    np.testing.assert_allclose(end.w, w, atol=1e-9)
    assert float(end.gradient.max()) < 1e-9


def test_what_is_left_has_mean_zero_and_rows_and_columns_are_damped(x64):
    group, mask, w = subsets("7", 30, 2)

    @jax.jit
    def left(f):
        data = retention_theory.make_data(mask, retention_theory.tables(group), "whitened", RIDGE)
        a, b = data.effects(mask * f)
        return mask * (f - a[:, None] - b) / data.scale

    noise = jax.random.normal(jax.random.key(9), mask.shape, jnp.float64)
    np.testing.assert_allclose(jnp.sum(left(noise), (0, 1)), 0, atol=1e-10)
    effect = jnp.broadcast_to(w[:7, None], mask.shape)
    size = [jnp.linalg.norm(left(f)) / jnp.linalg.norm(mask * f) for f in (effect - jnp.mean(effect, 0), noise)]
    assert size[0] < size[1] / 2


def test_subsets_are_drawn_without_replacement_and_grow():
    ranks = np.asarray(retention_theory.random_order(jax.random.key(0), 5, 3))
    np.testing.assert_array_equal(np.sort(ranks.reshape(25, 3), 0), np.arange(25)[:, None] * np.ones(3))
    assert len({tuple(r) for r in ranks.reshape(25, 3).T}) == 3
    many = np.asarray(retention_theory.random_order(jax.random.key(1), 3, 4000)) < 4
    np.testing.assert_allclose(many.mean(-1), 4 / 9, atol=4 * np.sqrt(20 / 81 / 4000))


@pytest.mark.slow
def test_the_flow_follows_the_ode(x64, kind="whitened"):
    """Short times: Euler steps of .01 are off by about that. The end of a climb with steps of .4 is where small ones end."""
    irreps = decompose(parse("7"))
    group = irreps.group
    mask = chosen(7, 35, 16, jax.random.key(5))
    w = random_maximum(jax.random.key(6), irreps, 1, 16)

    def field(t, w, data):
        g = retention_theory.value_and_gradient(w, retention_theory.tables(group), data)[1]
        g = g / jnp.linalg.norm(g, axis=0)
        return g - w * jnp.sum(w * g, 0)

    @jax.jit
    def solved(w):
        data = retention_theory.make_data(mask, retention_theory.tables(group), kind, RIDGE)
        return flow.solve(field, w, np.array([0.0, 2.0]), data, rtol=1e-8, atol=1e-10).ys[-1]

    exact = solved(w)
    np.testing.assert_allclose(flowed(group, kind, 400, 0.005)(w, mask).w, exact, atol=0.01)
    coarse, fine = (flowed(group, kind, steps, step)(w, mask) for steps, step in ((300, 0.4), (1200, 0.1)))
    np.testing.assert_allclose(jnp.linalg.norm(coarse.w, axis=0), 1, rtol=1e-12)
    assert bool((coarse.energy >= climbed(group, kind)(w, mask)[0] * (1 - 1e-9)).all())
    assert float(jnp.mean(jnp.abs(jnp.sum(coarse.w * fine.w, 0)) > 0.99)) > 0.9
