"""Exact reconstruction: layers against dense least squares in NumPy, counts against ranks, judges against distortions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.claims import reconstruct as claims
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.dynamics import reconstruct as theory

SMALL = ("5", "4", "S3")
LAYERS = {"complex": theory.conjugates, "coefficients": theory.coefficients, "maxima": theory.maxima, "tied": theory.tied}


@functools.cache
def runs(missing=0.0):
    return jd.sweep(claims.trial, jd.grid(claims.Layers, groups=SMALL, missing=missing), 2)


def data(claim, missing=0.0, form=None):
    return runs(missing).sel(form=form or claim.form, drop=True)


def passes(claim, ds):
    return all(check.passed for check in claim.judge(ds))


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda c: c.id)
def test_a_judge_upholds_what_is_right_and_refuses_everything_else(claim):
    assert passes(claim, data(claim)) == (claim.expected == "upheld")
    if claim.counterpart:
        assert passes(claim, data(claim, form=claim.counterpart))
        return
    for control in claim.controls.values():
        breach = control.breach
        assert not passes(claim, breach(data(claim)) if callable(breach) else data(claim, breach["missing"]))
    read = {"li2.thm3_complex": ("complex",), "li2.thm3_tight": ("coefficients",), "li2.thm3_real": ("maxima",)}
    for name in read.get(claim.id, ("tied", "share")):
        ds = data(claim)
        assert not passes(claim, ds.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})), name


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    fig = Figure()
    claim.plot(data(claim), fig)
    assert all(ax.has_data() for ax in fig.axes)


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


@pytest.mark.parametrize("name", ["5", *(pytest.param(name, marks=pytest.mark.slow) for name in ("S3", "Q8"))])
@pytest.mark.parametrize("layer", theory.LAYERS)
def test_the_layers_against_dense_least_squares_on_all_nodes(x64, layer, name):
    u, v, parts = joined(layer, name)
    found = parts[0][0].found

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
    irreps = parts[0][0].found[0]
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


def test_numbers_of_nodes_and_the_printed_bound():
    nodes = {name: [2 * sum(theory.count(layer, "any", int(d)) for d in decompose(parse(name)).degrees[1:])
                    for layer in ("complex", "coefficients")] for name in ("7", "S3", "D5", "Q8", "A4", "S4")}  # fmt: skip
    assert nodes == {"7": [12, 12], "S3": [34, 18], "D5": [66, 34], "Q8": [38, 22], "A4": [166, 58], "S4": [358, 126]}
    assert all(complex_ <= claims._bound(name) for name, (complex_, _) in nodes.items())


def test_a_whole_run_counts_its_nodes_and_symmetric_shares():
    ds = runs().isel(seed=0)
    np.testing.assert_array_equal(ds.maxima_nodes, [16, 10, 26])  # 4 (M - 1) for odd M
    np.testing.assert_allclose(ds.predicted_share, [0.5, 1 / 3, 0.2])


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: claims.Layers(groups=()), "at least one group"),
        (lambda: claims.Layers(missing=0.5), "missing"),
        (lambda: claims.Layers(groups=("X9",)), "X9"),
        (lambda: theory.count("random", "real", 1), "none of"),
    ],
)
def test_impossible_settings_are_refused(build, words):
    with pytest.raises(ValueError, match=words):
        build()
