"""Exact reconstruction: layers against dense least squares in NumPy, counts against ranks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.dynamics import reconstruct as theory

LAYERS = {"complex": theory.conjugates, "coefficients": theory.coefficients, "maxima": theory.maxima, "tied": theory.tied}


def made(layer, name, seed=0):
    """Pairs of a layer on one group, by sectors."""
    found = (decompose(parse(name)),)
    for i, sectors in enumerate(theory.sectors(found, real=layer in ("maxima", "tied"))):
        shape = theory.draws(layer, sectors)
        normal = jax.random.normal(jax.random.fold_in(jax.random.key(seed), i), shape, jnp.float64)
        pair = jax.jit(lambda normal, sectors=sectors: LAYERS[layer](normal, sectors))(normal)
        yield sectors, *(np.asarray(x) for x in pair)


def dense(u, v, name):
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
    np.testing.assert_allclose(ours, dense(u, v, name), atol=1e-20, rtol=1e-9)
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
        np.testing.assert_allclose(dense(np.delete(u, i, 1), np.delete(v, i, 1), "S3"), costs[i], rtol=1e-6)


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
