"""Features of Li2: judges on small runs and planted data, correlations and variants against definitions in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.errors import UsageError
from jaxdyn.theories.li2 import model, training
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.features import (
    apart,
    boundary_energy,
    cca,
    complex_block,
    maxima_flatness,
    median_share,
    regular,
    single_nodes,
    stage2_nodes,
    thm5_memorisation,
)
from jaxdyn.theories.li2.features.complex_block import MOST, Variant, init, loss, predict, trial
from jaxdyn.theories.li2.features.maxima_flatness import Maxima
from jaxdyn.theories.li2.features.maxima_flatness import trial as maxima_trial
from jaxdyn.theories.li2.features.thm1_energy import CLAIMS as ENERGY_CLAIMS
from jaxdyn.theories.li2.features.thm1_energy import Gradients, Weights, decomposition_trial, gradient_trial
from jaxdyn.theories.li2.features.thm5_memorisation import CLAIMS as MEMORISATION_CLAIMS
from jaxdyn.theories.li2.features.thm5_memorisation import OneTarget
from jaxdyn.theories.li2.features.thm5_memorisation import trial as memorisation_trial
from jaxdyn.theories.li2.training import Training
from tests.theories.li2.helpers import Small, dense, opponents, oracle, passes, planted_masses, read, refused, refuses_opponents

# Highest energies at a share and lowest ones between maxima, against definitions in numpy and other paths.

SMALL_PATHS = Small({apart.trial: jd.grid(apart.Paths, groups=("5", "S3"), starts=6, steps=120)}, seeds=2)


def test_barriers_of_equal_and_of_unequal_heights():
    np.testing.assert_allclose(apart.barriers(np.full(3, 2.0)), 1 + np.eye(3))
    np.testing.assert_allclose(apart.barriers(np.array([4.0, 2.0, 1.0])), [[4, 4 / 3, 0.8], [4 / 3, 2, 0.8], [0.8, 0.8, 1]])


def test_no_random_node_is_above_the_ceiling_at_its_share():
    """Energies from one-hot inputs; shares from the group's own projectors on cosines and sines."""
    m = 7
    x, y = dense(parse(str(m)))
    w = np.random.default_rng(0).normal(size=(2 * m, 400))
    w[:, 200:] = 0.05 * w[:, 200:] + np.tile(np.cos(2 * np.pi * np.arange(m) / m), 2)[:, None]
    w /= np.linalg.norm(w, axis=0)
    e = oracle(w, x, y, "square")[0]
    for k in (1, 2, 3):
        waves = np.stack([np.cos(2 * np.pi * k * np.arange(m) / m), np.sin(2 * np.pi * k * np.arange(m) / m)]) * (2 / m) ** 0.5
        t = sum(((waves @ half) ** 2).sum(0) for half in np.split(w, 2))
        assert (e <= m / 4 * (t**2 + (1 - t) ** 2) + 1e-12).all()


def test_bent_paths_between_frequencies_fall_at_least_as_far():
    irreps = decompose(parse("7"))
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        p, q = (np.asarray(energy.random_maximum(jax.random.key(k), irreps, k))[:, 0] for k in (1, 3))
        for _ in range(20):
            middle = rng.normal(size=(3, 14))
            points = np.concatenate([[p], middle / np.linalg.norm(middle, axis=1)[:, None], [q]])
            path = np.concatenate([np.linspace(a, b, 40) for a, b in zip(points[:-1], points[1:], strict=True)])
            path /= np.linalg.norm(path, axis=1)[:, None]
            assert float(energy.energy(path.T, irreps.group).min()) <= 7 / 8 + 1e-12


@pytest.mark.thinned
@pytest.mark.parametrize("claim", apart.CLAIMS, ids=lambda c: c.id)
def test_judges_uphold_and_refuse_opponents(claim):
    SMALL_PATHS.notices_a_tenth_and_every_breach(claim)
    fig = Figure()
    claim.plot(SMALL_PATHS.data(claim), fig)
    assert all(ax.has_data() for ax in fig.axes)


def test_groups_with_a_single_irrep_are_refused():
    with pytest.raises(jd.UsageError, match="two irreps"):
        jd.grid(apart.Paths, groups=("3",))


# Energies of Fourier and of memorising nodes by the definition in numpy, and what is read of them.

(BOUNDARY_CLAIM,) = boundary_energy.CLAIMS
SMALL_BOUNDARY = jd.grid(boundary_energy.Boundary, order=23, pairs=110, nodes=4)


def test_waves_have_norm_1_and_on_all_pairs_the_energy_of_a_maximum():
    with jax.enable_x64(True):
        w = np.asarray(boundary_energy.waves(jax.random.key(0), 7, 5))
    np.testing.assert_allclose(np.linalg.norm(w, axis=0), 1)
    np.testing.assert_allclose(oracle(w, *dense(parse("7")), "square")[0], 7 / 4)


def test_memorising_nodes_are_higher_on_training_pairs_and_lower_on_all():
    ds = jd.sweep(boundary_energy.trial, SMALL_BOUNDARY, seeds=6)
    assert (ds.measured_memory.mean("node") > 1.5 * ds.measured_fourier.mean("node")).all()
    assert (ds.memory_whole < ds.fourier_whole).all() and (ds.largest > 0.4).all()
    found = read(BOUNDARY_CLAIM, ds)
    assert found[boundary_energy.WHOLE].value == pytest.approx(23 / 4)
    assert all(refused(BOUNDARY_CLAIM, ds, rival) for rival in opponents(BOUNDARY_CLAIM).values())
    fig = Figure()
    BOUNDARY_CLAIM.plot(ds, fig)
    assert fig.axes[0].has_data()


def test_more_pairs_than_there_are_are_refused():
    with pytest.raises(jd.UsageError, match="pairs is at most 25"):
        boundary_energy.Boundary(order=5, pairs=26)


# The maxima of a node's energy: the judges on small runs, settings that are refused, other activations.


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"groups": ()}, "at least one group"),
        ({"groups": ("X9",)}, "X9"),
    ],
)
def test_impossible_settings_of_maxima_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(Maxima, **fields)


MAXIMA_CLAIMS = maxima_flatness.CLAIMS
SMALL_MAXIMA = Small({maxima_trial: jd.grid(Maxima, groups=("5", "4", "S3"), steps=150)})


@pytest.mark.parametrize("claim", [c for c in MAXIMA_CLAIMS if c.expected == "upheld"], ids=lambda c: c.id)
def test_a_judge_of_maxima_notices_a_tenth_and_every_breach(claim):
    SMALL_MAXIMA.notices_a_tenth_and_every_breach(claim)


@pytest.mark.parametrize("claim", MAXIMA_CLAIMS, ids=lambda c: c.id)
def test_figures_of_maxima_can_be_drawn(claim):
    SMALL_MAXIMA.draws(claim)


def test_few_starts_decide_nothing():
    ds = SMALL_MAXIMA.runs(maxima_trial).sel(form="derived", drop=True)
    with pytest.raises(jd.Inconclusive, match="at least 7 values of seed"):
        maxima_flatness.judge_values(ds.isel(seed=slice(2)))
    with pytest.raises(jd.Inconclusive, match="odd and of even"):
        maxima_flatness.judge_cyclic(ds.sel(group=["5", "S3"]))


@pytest.mark.slow
def test_relu_ends_elsewhere():
    ds = jd.sweep(maxima_trial, jd.grid(Maxima, groups=("S3",), activation="relu"), 8).sel(form="derived", drop=True)
    energies = np.unique(np.round(ds.measured_energy.values, 4))
    assert len(energies) > 5 and float(ds.measured_purity.min()) < 0.8
    assert not all(check.passed for check in maxima_flatness.judge_values(ds))


# p_50 and its intervals on planted masses.


def test_medians_of_planted_thresholds_and_their_intervals():
    found = median_share.halves(planted_masses())
    order = np.array([31, 101, 331.0])
    truth = 2 * np.log(order) / order
    low, high = found.interval()
    assert found.p.shape == (3, 6, 5) and found.drawn.shape == (3, 6, 5, median_share.DRAWS)
    np.testing.assert_allclose(found.p[:, :3, 1], np.tile(truth, (3, 1)), rtol=0.08)
    assert np.mean((low[:, :3] <= truth[:, None]) & (truth[:, None] <= high[:, :3])) >= 0.8


def test_a_threshold_beyond_the_grid_is_no_number():
    found = median_share.halves(planted_masses().isel(c=slice(0, 4)))
    assert np.isnan(found.p[:, :3]).all()


def test_thresholds_above_chance_are_higher():
    ds = planted_masses().isel(start=[0, 3, 4, 5])
    ds = ds.assign(measured_mass=0.2 + 0.7 * ds.p.broadcast_like(ds.measured_mass))
    plain, above = (median_share.halves(ds.assign(share=ds.share + 0.2), (0.6,), above_chance=a).p[0, :, 0] for a in (False, True))
    np.testing.assert_allclose(plain, 0.4 / 0.7, rtol=0.1)
    share = 0.2 + 0.01 * ds.degree.values
    np.testing.assert_allclose(above, (share + 0.6 * (1 - share) - 0.2) / 0.7, rtol=0.1)


def testquantiles_interpolate_between_neighbours():
    logs = np.log(np.random.default_rng(0).uniform(0.1, 1, (3, 7)))
    for kept in (0.5, 0.8, 0.9):
        np.testing.assert_allclose(median_share.quantile(logs, kept), np.exp(np.quantile(logs, kept, axis=-1)))
    assert np.isnan(median_share.quantile(np.array([-1.0, -0.5, np.inf]), 0.9))


# The blocks of S3 by hand, and the basis for any group.


def test_permutations_multiply_like_the_group():
    table = np.asarray(parse("S3").table)
    matrices = regular.permutations(table)
    for g in range(6):
        assert matrices[g].sum(0).tolist() == [1] * 6 and np.argmax(matrices[g], 0).tolist() == table[g].tolist()
        for h in range(6):
            np.testing.assert_array_equal(matrices[g] @ matrices[h], matrices[table[g, h]])


@pytest.mark.parametrize("name", ["5", "S3", "Q8"])
def test_the_basis_is_unitary_and_the_sum_of_blocks_a_representation(name):
    irreps = decompose(parse(name))
    q, table = regular.basis(irreps), np.asarray(irreps.group.table)
    np.testing.assert_allclose(q.conj().T @ q, np.eye(len(q)), atol=1e-12)
    sums = [regular.block_sum(irreps, h) for h in range(len(q))]
    np.testing.assert_allclose(sums[1] @ sums[2], sums[table[1, 2]], atol=1e-12)


def test_s3_has_its_plane_twice():
    degrees, often, apart = regular.counted("S3", 0)
    assert degrees.tolist() == [1, 1, 2] and apart < 1e-12
    np.testing.assert_allclose(often, [1, 1, 2], atol=1e-12)
    assert regular.counted("S3", 1)[2] > 0.1


# Networks and the forecasts for their nodes, at a tiny size.

S = Training(group="5", hidden=6, share=0.6, epochs=2, every=1)


def test_targets_are_those_of_the_training_pairs():
    d = training.data(S, jax.random.key(0))
    y = np.asarray(single_nodes.targets(d, S))
    assert np.sum(np.any(y != 0, 1)) == int(d.used)


def test_forecasts_and_measurements_have_a_number_for_every_node():
    with jax.enable_x64(True):
        run = jax.eval_shape(lambda key: single_nodes.trial(S, key), jax.random.key(0))
    assert run.predicted["place"].value.shape == (2, 6)
    assert run.measured["place"].value.shape == (6,)


# The judge of single nodes, on planted places.


def planted(seed=0):
    """Nodes of which nine in ten end where the forecast puts them, one in three in the largest irrep of the start."""
    rng = np.random.default_rng(seed)
    end = rng.integers(11, size=(16, 64)).astype(float)

    def mostly(share):
        return np.where(rng.random(end.shape) < share, end, rng.integers(11, size=end.shape))

    places = {"measured_place": end, "predicted_place": mostly(0.9), "start_place": mostly(0.3), "other_place": mostly(0.0)}
    places |= {"lot_place": mostly(0.4), "aligned_place": mostly(0.1)}
    ds = xr.Dataset({name: (("seed", "node"), value) for name, value in places.items()})
    ds = ds.assign(test_accuracy=("seed", np.ones(16)), purity=(("seed", "node"), rng.uniform(0.3, 1, end.shape)))
    return ds.assign_coords(seed=np.arange(16), irrep=np.arange(11))


def test_the_judge_upholds_what_is_planted_and_refuses_others():
    assert passes(stage2_nodes.CLAIMS[0], planted())
    refuses_opponents(stage2_nodes.CLAIMS[0], planted())
    (relu,) = (c for c in stage2_nodes.CLAIMS if c.id == "li2.stage2_nodes_relu")
    assert passes(relu, planted())
    refuses_opponents(relu, planted())


def test_the_use_of_irreps_is_compared_by_ranks():
    """Scipy's rank correlation of the counts; forecasts by the start and by other targets fall short."""
    ds = planted()
    found = stage2_nodes.agreement(ds)
    counts = [np.bincount(ds[name][3].astype(int), minlength=11) for name in ("predicted_place", "measured_place")]
    assert float(found[3]) == pytest.approx(scipy.stats.spearmanr(*counts).statistic)
    (use,) = (c for c in stage2_nodes.CLAIMS if c.id == "li2.forecast")
    assert [c.passed for c in use.judge(ds) if not c.gate] == [True, False], "counts of planted forecasts agree"


def evened(left=0.05, seed=0):
    """Nodes leave irreps forecast more than 6 times, in each third network 7, for those forecast less; a few move at random."""
    rng = np.random.default_rng(seed)
    ds = planted().isel(seed=0, drop=True).expand_dims(seed=np.arange(64))
    told = rng.integers(11, size=(64, 66)).astype(float)
    end = told.copy()
    for i, row in enumerate(end):
        most = 7 if i % 3 == 0 else 6
        spare = [node for irrep in range(11) for node in np.flatnonzero(row == irrep)[most:]]
        short = [irrep for irrep in range(11) for _ in range(6 - np.sum(row == irrep))]
        row[spare] = rng.permutation(short)[: len(spare)]
        row[:] = np.where(rng.random(66) < left, rng.integers(11, size=66), row)
    start = np.where(rng.random(told.shape) < 0.4, end, rng.integers(11, size=told.shape))
    other = rng.integers(11, size=told.shape).astype(float)
    places = {"measured_place": end, "predicted_place": told, "start_place": start, "other_place": other}
    places |= {"lot_place": start[:, ::-1], "aligned_place": other[:, ::-1]}
    return ds.drop_dims("node").assign({name: (("seed", "node"), value) for name, value in places.items()})


def test_the_forecast_of_single_nodes_does_not_tell_the_networks_use():
    (use,) = (c for c in stage2_nodes.CLAIMS if c.id == "li2.forecast")
    ds = evened()
    assert passes(use, ds) and 0 < float(stage2_nodes.agreement(ds).mean()) < 0.4
    refuses_opponents(use, ds)


def test_pure_nodes_are_judged_by_themselves():
    ds = planted()
    mixed = ds.assign(predicted_place=ds.predicted_place.where(ds.purity <= stage2_nodes.PURE, 11.0))
    assert [c.passed for c in stage2_nodes.judge(mixed)][2] is False
    pure = ds.assign(predicted_place=ds.predicted_place.where(ds.purity > stage2_nodes.PURE, 11.0))
    assert [c.passed for c in stage2_nodes.judge(pure)][2] is True


# The energy of a node: the judges on small runs, settings that are refused.

SMALL_ENERGY = Small({decomposition_trial: jd.grid(Weights, groups=("4", "S3")), gradient_trial: jd.grid(Gradients)})


@pytest.mark.parametrize("claim", [c for c in ENERGY_CLAIMS if c.expected == "upheld"], ids=lambda c: c.id)
def test_a_judge_of_energies_notices_a_tenth_and_every_breach(claim):
    SMALL_ENERGY.notices_a_tenth_and_every_breach(claim)


@pytest.mark.parametrize("claim", ENERGY_CLAIMS, ids=lambda c: c.id)
def test_figures_of_energies_can_be_drawn(claim):
    SMALL_ENERGY.draws(claim)


@pytest.mark.parametrize("name", ["5", "S3", "Q8"])
def test_blocks_of_any_matrix_give_its_products_with_permutations(name):
    """The norms of the summed diagonal blocks do; their squared traces, as printed, for commutative groups alone."""
    irreps = decompose(parse(name))
    table, m = irreps.group.table, irreps.group.order
    s = np.random.default_rng(0).normal(size=(m, m))
    products = np.array([s[table[h], np.arange(m)].sum() for h in range(m)])
    left, start = np.sum((products - products.mean()) ** 2) / 2, 1
    q = regular.basis(irreps)
    turned, norms, traces = q.conj().T @ s @ q, 0.0, 0.0
    for d in irreps.degrees[1:]:
        blocks = sum(turned[start + r * d : start + r * d + d, start + r * d : start + r * d + d] for r in range(d))
        norms, traces, start = (
            norms + m / (2 * d) * np.sum(abs(blocks) ** 2),
            traces + m / (2 * d) * abs(np.trace(blocks)) ** 2,
            start + d * d,
        )
    np.testing.assert_allclose(norms, left)
    assert np.isclose(traces, left) == (name == "5")


def test_no_groups_are_refused():
    with pytest.raises(jd.UsageError, match="at least one group"):
        jd.grid(Weights, groups=())


def test_more_samples_than_pairs_are_refused():
    with pytest.raises(jd.UsageError, match="samples is at most 36, the number of pairs"):
        jd.grid(Gradients, samples=37)


# Memorisation: the judges on small runs, probabilities that are given, settings that are refused.

SMALL_TARGET = Small({memorisation_trial: jd.grid(OneTarget, starts=256)})


@pytest.mark.parametrize("claim", [c for c in MEMORISATION_CLAIMS if c.expected == "upheld"], ids=lambda c: c.id)
def test_a_judge_of_memorisation_notices_a_tenth_and_every_breach(claim):
    SMALL_TARGET.notices_a_tenth_and_every_breach(claim)


@pytest.mark.parametrize("claim", MEMORISATION_CLAIMS, ids=lambda c: c.id)
def test_figures_of_memorisation_can_be_drawn(claim):
    SMALL_TARGET.draws(claim)


def test_distinct_ends_are_counted(x64):
    assert thm5_memorisation.distinct(jnp.asarray([[0.0, 1.0, 0.0, 1.0, 0.5], [1.0, 0.0, 1.0, 1e-5, 0.5]])) == 3


@pytest.mark.slow
def test_probabilities_that_are_given_are_used():
    ds = jd.sweep(memorisation_trial, jd.grid(OneTarget, group="3", p=(1.0, 3.0, 6.0), starts=256), 1)
    np.testing.assert_allclose(ds.p.isel(seed=0), (0.1, 0.3, 0.6))
    relu = np.array([1, 3, 6]) * np.sqrt(2 / 46)
    np.testing.assert_allclose(ds.measured_strength.sel(activation="relu").isel(seed=0), relu, atol=1e-6)
    assert all(check.passed for check in thm5_memorisation.judge(ds.sel(form="derived")))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ratio": 1.0}, "ratio"),
        ({"group": "9"}, "2 to 8 elements"),
        ({"group": "3", "p": (1.0, 2.0)}, "one probability for each of the 3 pairs"),
        ({"group": "2", "p": (0.0, 1.0)}, "positive"),
        ({"group": "2", "p": (1.0, 1.0)}, "most probable"),
    ],
)
def test_impossible_settings_of_memorisation_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(OneTarget, **fields)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("uneven", [0, 1])
def test_classes_have_their_sizes(uneven):
    s = cca.Sample(uneven=uneven, classes=4, each=3, inputs=2)
    x = jax.random.normal(jax.random.key(0), (12, 2))
    sizes = np.asarray(cca.one_hot(s, x, jax.random.key(1)).sum(0)).tolist()
    assert sizes == ([9, 1, 1, 1] if uneven else [3] * 4)


@pytest.mark.usefixtures("x64")
def test_correlations_are_those_of_regression_and_of_the_definition():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 3)), np.eye(3)[rng.permutation(np.repeat(np.arange(3), 10))]
    xc, yc = x - x.mean(0), y - y.mean(0)
    fit = yc @ np.linalg.lstsq(yc, xc[:, 0], rcond=1e-10)[0]
    np.testing.assert_allclose(cca.canonical(x[:, :1], y)[0] ** 2, (fit**2).sum() / (xc[:, 0] ** 2).sum(), rtol=1e-12)
    s_xx, s_yy, s_xy = xc.T @ xc, yc[:, :2].T @ yc[:, :2], xc.T @ yc[:, :2]
    squared = np.linalg.eigvals(np.linalg.solve(s_xx, s_xy) @ np.linalg.solve(s_yy, s_xy.T)).real
    np.testing.assert_allclose(cca.canonical(x, y)[0] ** 2, squared.max(), rtol=1e-10)


@pytest.mark.usefixtures("x64")
def test_the_energy_is_that_of_the_definition():
    y, f = np.eye(2)[[0, 1, 0, 1]], np.array([1.0, 2.0, 3.0, 5.0])
    np.testing.assert_allclose(cca.energy(y, f), 0.5 * 2 * 1.5**2)


SMALL = {"group": "5", "hidden": 6, "epochs": 4, "every": 2}
PAIRS = np.stack(np.divmod(np.arange(25), 5), -1)


@pytest.mark.slow
def test_complex_weights_against_numpy():
    s = Variant(imaginary=1.0, **SMALL)
    p = init(s, jax.random.key(0))
    w, v = (np.asarray(x[0], complex) + 1j * np.asarray(x[1]) for x in p)
    o = ((w[PAIRS[:, 0]] + w[5 + PAIRS[:, 1]]) ** 2 @ v).real
    np.testing.assert_allclose(predict(s, p, jnp.asarray(PAIRS)), o - o.mean(1, keepdims=True), atol=1e-6)
    assert abs(float(jnp.mean(p.w[0] ** 2) / jnp.mean(p.w[1] ** 2)) - 1) < 0.6  # both parts have the same spread


@pytest.mark.slow
def test_real_weights_are_the_model_s():
    s = Variant(imaginary=0.0, **SMALL)
    p = init(s, jax.random.key(0))
    assert not p.w[1].any() and not p.v[1].any()
    o = model.predict(model.Params(p.w[0], p.v[0]), jnp.asarray(PAIRS))
    np.testing.assert_allclose(predict(s, p, jnp.asarray(PAIRS)), o - o.mean(1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("blocks", range(MOST + 1))
def test_residual_blocks_against_numpy(blocks):
    s = Variant(kind="residual", blocks=float(blocks), **SMALL)
    p = init(s, jax.random.key(1))
    w, layers, v = (np.asarray(x) for x in p)
    x = np.maximum(w[PAIRS[:, 0]] + w[5 + PAIRS[:, 1]], 0)
    for layer in layers[:blocks]:
        x = np.maximum(x + x @ layer, 0)
    o = x @ v
    np.testing.assert_allclose(predict(s, p, jnp.asarray(PAIRS)), o - o.mean(1, keepdims=True), atol=1e-6)


@pytest.mark.slow
def test_the_loss_is_that_of_the_pairs_trained_on():
    s = Variant(share=0.6, **SMALL)
    p, d = init(s, jax.random.key(2)), training.data(s, jax.random.key(3))
    known = np.asarray(d.samples).reshape(-1, 2)[:15]
    o = np.asarray(predict(s, p, jnp.asarray(known)))
    aim = np.eye(5)[(known.sum(1)) % 5] - 0.2
    assert float(loss(s, p, d)) == pytest.approx(((o - aim) ** 2).sum(1).mean(), rel=1e-5)


@pytest.mark.slow
def test_short_runs_of_both_kinds():
    ds = jd.sweep(trial, jd.grid(Variant, imaginary=[0.0, 1.0], **SMALL), 2)
    assert set(ds.measured_time.values.ravel()) <= {0, 2, 4, 8} and ds.sizes["epoch"] == 3
    assert float(ds.measured_purity.min()) > 0.2
    deep = jd.sweep(trial, jd.grid(Variant, kind="residual", blocks=[0.0, 2.0], lr=0.05, **(SMALL | {"epochs": 40})), 1)
    assert float(deep.train_accuracy[..., -1].min()) > float(deep.train_accuracy[..., 0].max())


def test_settings_that_are_refused():
    for fields, why in (
        ({"share": 1.0}, "pair to train on"),
        ({"epochs": 7}, "multiple of every"),
        ({"imaginary": 0.5}, "0 or 1"),
        ({"blocks": 3.0}, "whole number"),
    ):
        with pytest.raises(UsageError, match=why):
            Variant(**fields)


def data(field, times, seeds=8):
    """Runs with times by the values 0 and 1 of a field and one of share or top; a little noise."""
    second = {"imaginary": ("share", [0.7, 0.9]), "blocks": ("top", [0.0, 1.0])}[field]
    rng = np.random.default_rng(0)
    time = np.asarray(times, float)[:, :, None] * (1 + 0.005 * rng.normal(size=(2, 2, seeds)))
    axes = (field, second[0], "seed")
    flat = xr.DataArray(np.ones((*time.shape, 3)), dims=(*axes, "epoch"))
    ds = xr.Dataset({"measured_time": (axes, time), "test_accuracy": flat, "train_accuracy": flat})
    return ds.assign_coords({field: [0.0, 1.0], second[0]: second[1], "seed": range(seeds), "epoch": [0, 300, 600]})


def passed(checks):
    return [c.passed for c in checks if not c.gate]


def test_complex_weights_are_faster_where_pairs_are_scarce():
    ds = data("imaginary", [[300, 50], [150, 50]])
    assert passed(complex_block.judge_complex(ds)) == [True, True]
    assert passed(complex_block.judge_complex(complex_block.exchanged("imaginary")(ds))) == [False, False]
    assert passed(complex_block.judge_complex(data("imaginary", [[300, 300], [150, 150]]))) == [True, False]


def test_a_block_delays():
    ds = data("blocks", [[50, 80], [1200, 1200]])
    assert passed(complex_block.judge_delay(ds)) == [True]
    assert passed(complex_block.judge_delay(data("blocks", [[50, 80], [90, 120]]))) == [False]


def test_zero_start():
    ds = data("blocks", [[50, 80], [1200, 1200]])
    assert passed(complex_block.judge_start(ds)) == passed(complex_block.judge_start(ds.sel(blocks=[0.0]))) == [True]
    assert passed(complex_block.judge_start(complex_block.exchanged("top")(ds))) == [False]
    late = data("blocks", [[700, 1200], [400, 1200]])
    assert passed(complex_block.judge_start(late)) == [False], "who does not get there counts with 600 epochs"


def test_purity():
    ds = data("blocks", [[50, 80], [1200, 1200]])
    ds = ds.assign(measured_purity=ds.measured_time * 0 + 0.4, random_purity=ds.measured_time * 0 + 0.2)
    noise = 1 + 0.01 * np.random.default_rng(1).normal(size=ds.measured_purity.shape)
    ds = ds.assign(measured_purity=ds.measured_purity * noise)
    assert passed(complex_block.judge_purity(ds)) == [True, True]
    assert complex_block.at_start(ds) == pytest.approx(0.2)
    assert passed(complex_block.judge_purity(jd.swap(measured_purity=1 / 11)(ds))) == [False, False]


@pytest.mark.parametrize("claim", complex_block.CLAIMS, ids=lambda c: c.id)
def test_claims_have_opponents(claim):
    assert claim.controls and claim.rivals and claim.evidence == "network"
    if claim.id == "li2.complex_faster":
        refuses_opponents(claim, data("imaginary", [[300, 50], [150, 50]]))
    else:
        ds = data("blocks", [[50, 80], [400, 1200]], 16)
        noise = 1 + 0.01 * np.random.default_rng(1).normal(size=ds.measured_time.shape)
        refuses_opponents(
            claim, ds.assign(measured_purity=0 * ds.measured_time + 0.4 * noise, random_purity=0 * ds.measured_time + 0.2)
        )
