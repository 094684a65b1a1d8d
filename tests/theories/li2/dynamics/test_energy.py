"""The energy of a node: dense one-hot algebra, finite differences and FFTs in NumPy as oracles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ascent, energy

from ..energy_oracle import SIGMA, dense, oracle

pytestmark = pytest.mark.usefixtures("x64")


value_and_gradient = jax.jit(energy.value_and_gradient, static_argnums=(1, 2))


energy_of = jax.jit(energy.energy, static_argnums=(1, 2))


random_maximum = jax.jit(energy.random_maximum, static_argnums=(1, 2, 3))


random_member = jax.jit(energy.random_member, static_argnums=(1, 2, 3))


terms = jax.jit(energy.terms, static_argnums=1)


@pytest.mark.thinned
@pytest.mark.parametrize("kind", SIGMA)
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


def test_a_residual_takes_the_place_of_the_targets():
    group, rng = parse("S3"), np.random.default_rng(1)
    w, q = rng.normal(size=(12, 2)), rng.normal(size=(6, 6))
    x, y = dense(group)
    r = (y @ q).T @ (x @ w) ** 2
    e, g = value_and_gradient(jnp.asarray(w), group, residual=jnp.asarray(q))
    np.testing.assert_allclose(e, (r**2).sum(0) / 2, rtol=1e-12)
    np.testing.assert_allclose(g, x.T @ (2 * (x @ w) * (y @ q @ r)), rtol=1e-11)


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


def test_split_undoes_join_and_the_node_sees_u_at_one_and_v_at_the_inverse_of_the_other():
    group, rng = parse("S3"), np.random.default_rng(2)
    u, v = rng.normal(size=(2, 6, 2))
    w = energy.join(jnp.asarray(u), jnp.asarray(v), group)
    assert all(np.array_equal(a, b) for a, b in zip(energy.split(w, group), (u, v), strict=True))
    x = model.preactivations(w, model.pairs(6)).reshape(6, 6, 2)
    for a, b in [(1, 4), (3, 3), (5, 2)]:
        np.testing.assert_allclose(x[a, b], u[a] + v[int(group.inverse[b])])


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


def test_maxima_of_every_group_are_those_that_are_predicted_for_merged_irreps():
    assert [len(p.irreps) for p in energy.peaks(decompose(parse("A4")))] == [2, 1]
