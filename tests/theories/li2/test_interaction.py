"""Li2's chapter on Stage III."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import energy, ridge
from jaxdyn.theories.li2.dynamics.ridge import Problem
from jaxdyn.theories.li2.interaction import (
    diversity,
    lemma9_muon,
    repulsion_raw,
    stage3,
    suppression,
    thm6_repulsion,
    thm7_modulation,
    thm8_collect,
    trained_features,
)
from jaxdyn.theories.li2.interaction.thm7_modulation import CLAIMS, Learned, trial
from jaxdyn.theories.li2.model import Params
from jaxdyn.theories.li2.training import Run, Training
from tests.theories.li2.helpers import Small, opponents, read, refused, refuses_opponents, rejects

# Judges of irreps held and of learning rates, on planted runs.

MUON, RATES = diversity.CLAIMS


SEEDS = np.arange(16)


def held(more=2.0, less=0.3):
    """Irreps held and test losses: Muon's nodes hold ``more``, and its loss is lower by exp(-less)."""
    noise = np.random.default_rng(1).normal(size=(2, 2, 16))
    irreps = 6 + np.array([0, more])[:, None] + 0.3 * noise[0]
    loss = np.exp(np.array([0, -less])[:, None] + 0.05 * noise[1])
    axes = ("optimizer", "seed")
    data = {"measured_held": (axes, irreps), "measured_loss": (axes, loss)}
    data |= {name: (axes, np.full(irreps.shape, number)) for name, number in (("irreps", 11.0), ("alive", 24.0))}
    return xr.Dataset(data, {"optimizer": ["adam", "muon"], "seed": SEEDS})


def rated(energy=1.5, rates=(0.1, 0.2, 0.3)):
    """Runs that generalise at every rate; ``energy`` of nodes at the largest rate, 1 at others."""
    noise = np.random.default_rng(2).normal(size=(len(rates), 16))
    mean = np.append(np.ones(len(rates) - 1), energy)[:, None] + 0.02 * noise
    accuracy = np.ones((len(rates), 16, 2))
    data = {"energy": (("lr", "seed"), mean), "test_accuracy": (("lr", "seed", "epoch"), accuracy)}
    return xr.Dataset(data, {"lr": list(rates), "seed": SEEDS, "epoch": [0, 1]})


def test_what_is_planted_is_read_and_rivals_are_told_apart():
    found = read(MUON, held())
    assert found[diversity.MORE].value == pytest.approx(2, abs=0.3) and found[diversity.LOWER].value == pytest.approx(0.3, abs=0.1)
    assert found[diversity.MISSING].value == pytest.approx(5, abs=0.3)
    assert diversity.at_random(held()) == pytest.approx(11 * (10 / 11) ** 24)
    refuses_opponents(MUON, held())
    found = read(RATES, rated())
    assert found[diversity.ENERGY].value == pytest.approx(np.log(1.5), abs=0.05)
    assert [found[name].value for name in (diversity.SMALLEST, diversity.BETWEEN, diversity.LARGEST)] == [1, 1, 1]


def test_a_run_that_memorises_at_one_rate_shows_in_its_share():
    for rate, name in ((0.1, diversity.SMALLEST), (0.2, diversity.BETWEEN), (0.3, diversity.LARGEST)):
        spoiled = rated().assign(test_accuracy=rated().test_accuracy.where(rated().lr != rate, 0.5))
        found = read(RATES, spoiled)
        assert (
            found[name].value == 0 and sum(found[n].value for n in (diversity.SMALLEST, diversity.BETWEEN, diversity.LARGEST)) == 2
        )
    refuses_opponents(RATES, spoiled.assign(test_accuracy=spoiled.test_accuracy.where(spoiled.lr > 0.1, 0.5)))


def test_too_few_runs_decide_nothing():
    with pytest.raises(jd.Inconclusive, match="seed"):
        diversity.judge_held(held().isel(seed=slice(8)))


# The polar factor's judges on small runs; settings that are refused.


@pytest.mark.slow
def test_judges_of_the_polar_factor_reject_distortions():
    ds = jd.sweep(lemma9_muon.trial, jd.grid(lemma9_muon.Polar, rows=6, columns=3), seeds=2)
    for form, holds in (("derived", True), ("printed", False)):
        assert all(c.passed for c in lemma9_muon.judge_column(ds.sel(form=form))) == holds
    one = ds.sel(form="derived")
    assert all(c.passed for c in lemma9_muon.judge_inner(one))
    judges = {"inner": lemma9_muon.judge_inner} | dict.fromkeys(("error", "column"), lemma9_muon.judge_column)
    for name, judge in judges.items():
        assert rejects(judge, one, name, 0.9) and rejects(judge, one, name, 1.1)


def test_columns_that_span_the_space_are_refused():
    with pytest.raises(jd.UsageError, match="columns=16.*not allowed: columns is below rows"):
        lemma9_muon.Polar(columns=16)


# Signs along a small training; settings that are refused.


@pytest.mark.slow
def test_signs_along_training_with_all_pairs_counted():
    small = {"group": "5", "samples": 12, "hidden": 8, "counted": 28, "records": 2, "every": 3}
    ds = jd.sweep(repulsion_raw.trial, jd.grid(repulsion_raw.Similar, activation=["square", "relu"], **small), seeds=2)
    assert set(np.unique(ds.measured_sign)) <= {-1.0, 0.0, 1.0} and list(ds.epoch) == [0, 3, 6]
    agree = (ds.measured_sign == ds.predicted_sign).mean("pair")
    np.testing.assert_allclose(agree.sel(which="most similar"), agree.sel(which="random"))
    (claim,) = repulsion_raw.CLAIMS
    found = read(claim, ds)
    assert all(found[repulsion_raw.EXCESS.format(kind)].value == 0 for kind in repulsion_raw.COMPARED)
    late = (ds.which == "most similar") & (ds.epoch > 0)
    ds = ds.assign(measured_sign=ds.predicted_sign.where(late, 0 * ds.measured_sign))
    refuses_opponents(claim, ds)


@pytest.mark.parametrize("fields", [{"counted": 40_000}, {"samples": 530}])
def test_more_pairs_than_there_are_are_refused(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.*not allowed: .* is at most"):
        repulsion_raw.Similar(**fields)


# The trial of all stages at a tiny size, times of crossings, and the judges on planted weights and times.

TINY = stage3.Stages(group="5", hidden=5, horizon=0.4, records=20, lr=0.01)


@pytest.mark.parametrize(
    ("curve", "expected"),
    [([4, 2, 1, 0], 1.5), ([4, 1, 3, 1], 2.75), ([4, 4, 4, 4], 0.0), ([1, 1, 1, 1], 0.0), ([1, 0, 0, 2], 0.0)],
)
def test_a_time_is_that_of_the_last_crossing(curve, expected, x64):
    found = stage3.settled(jnp.asarray(curve, jnp.float64), jnp.asarray(1.5), jnp.arange(4.0))
    np.testing.assert_allclose(found, expected)


@pytest.mark.slow
def test_curves_vanish_at_the_ridge_solution_and_guessing_costs_one(x64):
    samples = model.pairs(5)
    start = model.init(jax.random.key(0), 5, 6, "float64")
    y = model.targets(parse("5"), samples)
    given = Problem(samples, y, *(jnp.asarray(x, jnp.float64) for x in (0.2, 0.1, 1.0)))
    first = ridge.solution(model.features(start.w, samples), y, given.eta)
    curves = jax.jit(stage3.curves)
    best = curves(start._replace(v=first), first, given, samples, y)
    assert best["apart"] < 1e-12 and best["first"] < 1e-12
    silent = curves(start._replace(v=jnp.zeros_like(start.v)), first, given, samples, y)
    np.testing.assert_allclose([silent["test"], silent["first"]], 1)
    assert silent["sent"] == 0


@functools.cache
def tiny(lr, ratio=1.0, ahead=0.0):
    """Weights of one run at tiny size: the network's, and those of each flow."""
    with jax.enable_x64(True):
        s = dataclasses.replace(TINY, lr=lr, ratio=ratio, ahead=ahead)
        run = TRIAL(s, jax.random.key(1))
        found = {"network": run.measured["weights"], "slaved": run.predicted["weights"]}
        found |= {name: run.recorded[name] for name in ("both", "fixed", "start")}
        return {name: np.asarray(value.value) for name, value in found.items()}


TRIAL = jax.jit(stage3.trial)


@pytest.mark.slow
def test_descent_converges_to_the_flow_of_both_layers_at_order_one():
    """Euler steps against the solver: the error halves with the step, and is small next to the other flows'."""
    off = [np.abs(run["network"] - run["both"]).max() for run in (tiny(0.01), tiny(0.005), tiny(0.0025))]
    np.testing.assert_allclose(np.log2([off[0] / off[1], off[1] / off[2]]), 1, atol=0.1)
    run = tiny(0.0025)
    assert off[2] < 0.05 * min(np.abs(run["network"] - run[name]).max() for name in ("slaved", "fixed"))


@pytest.mark.slow
def test_a_fast_top_layer_is_nearly_slaved():
    runs = [tiny(0.01, ratio, 1.0) for ratio in (1.0, 10.0, 100.0)]
    off = [np.linalg.norm(run["network"] - run["slaved"]) for run in runs]
    assert off[0] > off[1] > off[2]


@pytest.mark.parametrize("wrong", [{"records": 30}, {"share": 1.0}])
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(jd.UsageError):
        stage3.Stages(**wrong)


FLOW, TIMES, DECAYS = stage3.CLAIMS


def weights(lag=0.5, power=-0.5):
    """Weights off the slaved flow's by a part of their change that is a power of the ratio of rates."""
    rng = np.random.default_rng(0)
    ratio = np.array([1.0, 4.0, 16.0])
    change = rng.normal(size=(8, 1, 3, 200))
    across = rng.normal(size=(8, 1, 3, 200))
    part = lag * ratio[:, None, None] ** power * np.exp(0.02 * rng.normal(size=(8, 1, 1, 1)))
    axes, records = ("seed", "ratio", "time", "entry"), ("seed", "ratio", "moment")
    own = np.broadcast_to(change, (8, 3, 3, 200))
    data = {"measured_weights": (axes, own), "predicted_weights": (axes, own - part * across), "both": (axes, 1.01 * own)}
    data |= {"start": (("seed", "ratio", "entry"), np.zeros((8, 3, 200))), "fixed": (axes, 0.1 * own)}
    names = [f"{kind}_{name}" for kind in ("curve", "flow") for name in ("accuracy", "apart", "test", "sent")]
    one = np.ones((8, 3, 4))
    data |= {name: (records, one) for name in names} | {"t": (records, one * np.arange(4.0))}
    return xr.Dataset(data, {"ratio": ratio, "seed": np.arange(8)})


def times(powers=(-0.2, 0.0, 0.2), field="eta", sizes=(1.0, 6.0, 4.0)):
    """Times of the stages that are powers of a field, with noise of one in a hundred."""
    rng = np.random.default_rng(0)
    eta = np.array([0.2, 0.4, 0.8])
    value = np.array(sizes) * eta[:, None] ** np.array(powers) * np.exp(0.01 * rng.normal(size=(8, 3, 3)))
    axes = ("seed", field, "stage")
    data = {"measured_stage_time": (axes, value), "predicted_stage_time": (axes, value)}
    curves = {"curve_accuracy": np.ones((8, 3, 4)), "curve_first": np.linspace(1, 0.8, 4) + 0.01 * rng.normal(size=(8, 3, 4))}
    data |= {name: (("seed", field, "moment"), curve) for name, curve in curves.items()}
    return xr.Dataset(data, {field: eta, "stage": list(stage3.STAGES), "seed": np.arange(8)})


def by_decay():
    return times((0.0, -0.4, 1.0), "decay")


def test_distances_and_their_power_are_read():
    found = read(FLOW, weights())
    np.testing.assert_allclose([found[stage3.EQUAL].value, found[stage3.FASTEST].value], [0.5, 0.125], rtol=0.1)
    np.testing.assert_allclose([found[stage3.POWER].value, found[stage3.BOTH].value], [-0.5, 0.01], rtol=0.05)


def test_opponents_are_told_apart_unless_they_are_what_is_planted():
    for claim, right in ((FLOW, weights()), (TIMES, times()), (DECAYS, by_decay())):
        refuses_opponents(claim, right)
    ordered = times((-1.0, 0.0, 0.2), sizes=(1.0, 9.0, 20.0))
    rivals = opponents(TIMES)
    assert not refused(TIMES, ordered, rivals["the stages end in their order"])


def test_slopes_and_the_order_are_those_planted():
    np.testing.assert_allclose(stage3.slopes(times((-1.0, 0.5, 0.2))).mean("seed"), (-1.0, 0.5, 0.2), atol=0.02)
    found = read(TIMES, times())
    assert found[stage3.ORDER].value == 0 and found[stage3.NEAR].value == pytest.approx(0.8, abs=0.03)
    assert read(TIMES, times(sizes=(1.0, 2.0, 9.0)))[stage3.ORDER].value == 1
    assert stage3.SLOPE.format("decay", "III") not in read(DECAYS, by_decay())


def test_too_few_networks_decide_nothing():
    for claim, right in ((FLOW, weights()), (TIMES, times())):
        with pytest.raises(jd.Inconclusive):
            claim.judge(right.isel(seed=slice(3)))


@pytest.mark.parametrize(("claim", "data"), [(FLOW, weights), (TIMES, times), (DECAYS, by_decay)])
def test_figures_have_data(claim, data):
    fig = Figure()
    claim.plot(data(), fig)
    assert all(ax.has_data() for ax in fig.axes)


# Gains of the polar factor in irreps that other nodes hold, where Lemma 9 says what they are; the judge on planted gains.

HELD, FREE = 5, 7  # irreps of Z_23 that are held, and the one that none holds


GAINS, MASSES = jax.jit(suppression.gains, static_argnums=2), jax.jit(suppression.masses, static_argnums=1)


@functools.partial(jax.jit, static_argnums=0)
def maxima(irreps):
    pairs = irreps.merged[1:]
    return jnp.stack([energy.random_maximum(jax.random.key(k), irreps, pairs[k][0])[:, 0] for k in range(FREE + 1)], 1)


@pytest.fixture
def planted(x64):
    """Nodes of one irrep each, and their irreps."""
    irreps = decompose(parse("23"))
    return maxima(irreps), irreps


@pytest.mark.slow
def test_masses_are_those_of_the_irreps(planted):
    w, irreps = planted
    mass = np.asarray(MASSES(w, irreps))
    np.testing.assert_allclose(mass[:, : FREE + 1], np.eye(FREE + 1), atol=1e-12)
    assert mass[:, FREE + 1 :] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("across", [0.05, 0.3, 1.0])
def test_lemma_9_next_to_nodes_that_hold_their_irreps(planted, across):
    """The gradients of held nodes point along them; the last node's has a small part there and one in a free irrep."""
    w, irreps = planted
    nodes = jnp.concatenate([w[:, :HELD], w[:, HELD : HELD + 1]], 1)
    along = 1e-4 * jnp.sum(w[:, :HELD], 1)
    g = jnp.concatenate([w[:, :HELD], (along + across * w[:, FREE])[:, None]], 1)
    held, free = GAINS(nodes, g, irreps)
    assert float(free) == pytest.approx(1 / across, rel=1e-3)
    assert float(held) == pytest.approx(1 / (1 + across), rel=1e-3)


def test_gains_by_hand(planted):
    """Against SciPy's polar factor and loops over nodes and irreps."""
    w, irreps = planted
    rng = np.random.default_rng(0)
    nodes = np.asarray(w)[:, [0, 1, 2, 2, 3, 4]] + 0.05 * rng.normal(size=(46, 6))
    g = rng.normal(size=(46, 6))
    turned = scipy.linalg.polar(g)[0]
    share, before, after = (np.asarray(MASSES(jnp.asarray(x), irreps)) for x in (nodes, g, turned))
    share = share / np.sum(nodes**2, 0)[:, None]
    sums = np.zeros((2, 2))
    for k in range(6):
        for j in range(share.shape[1]):
            if j != np.argmax(share[k]):
                free = not any(share[i, j] >= suppression.HELD for i in range(6) if i != k)
                sums[int(free)] += before[k, j], after[k, j]
    np.testing.assert_allclose(GAINS(jnp.asarray(nodes), jnp.asarray(g), irreps), np.sqrt(sums[:, 1] / sums[:, 0]), rtol=1e-9)


CLAIM = suppression.CLAIMS[0]


def planted_gains(factor, seeds=32):
    """Gains whose held part is ``factor`` of the free one, with noise of 5%."""
    rng = np.random.default_rng(0)
    free = np.exp(rng.normal(size=(seeds, 3)))
    gain = np.stack([factor * free * np.exp(0.05 * rng.normal(size=free.shape)), free], -1)
    coords = {"seed": np.arange(seeds), "epoch": [100, 200, 300], "part": ["held", "free"]}
    axes = ("seed", "epoch", "part")
    return xr.Dataset({"measured_gain": (axes, gain), "test_accuracy": (axes[:2], 0 * free)}, coords)


@pytest.mark.parametrize("factor", [1.0, 0.8, 0.5])
def test_the_factor_is_read_and_one_half_told_apart(factor):
    ds = planted_gains(factor)
    np.testing.assert_allclose([one.value for one in read(CLAIM, ds).values()], np.log(factor), atol=0.03)
    (half,) = [rival for name, rival in opponents(CLAIM).items() if "halved" in name and "Theorem" in name]
    assert refused(CLAIM, ds, half) == (factor != 0.5)


def test_too_few_seeds_decide_nothing():
    with pytest.raises(jd.Inconclusive):
        CLAIM.judge(planted_gains(1.0, seeds=8))


def test_the_figure_has_data():
    fig = Figure()
    CLAIM.plot(planted_gains(1.0), fig)
    assert all(ax.has_data() for ax in fig.axes)


# Repulsion's judge on small runs; settings that are refused.


@pytest.mark.slow
def test_judge_of_pairs_rejects_distortions():
    pairs = jd.sweep(thm6_repulsion.trial, jd.grid(thm6_repulsion.Pairs, activation=["silu"], nodes=[12], capacity=16), seeds=2)
    assert all(c.passed for c in thm6_repulsion.judge_identity(pairs))
    assert rejects(thm6_repulsion.judge_identity, pairs, "b", 1 + 1e-9)


@pytest.mark.parametrize("fields", [{"nodes": 130.0}, {"nodes": 129.0, "more": 1.0}, {"samples": 50}])
def test_more_than_there_are_are_refused(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.*not allowed: .* is at most"):
        thm6_repulsion.Pairs(**fields)


# Top-down modulation: residuals on S3, the judges on small runs, irreps that are given, settings that are refused.

SMALL = Small({trial: jd.grid(Learned, groups=("S3",), steps=150)})


@pytest.mark.slow
@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.expected == "upheld"], ids=lambda c: c.id)
def test_a_judge_notices_a_tenth_and_every_breach(claim):
    SMALL.notices_a_tenth_and_every_breach(claim)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    SMALL.draws(claim)


def test_the_residual_of_a_learned_sign_on_s3():
    ds = SMALL.runs(thm7_modulation.trial)
    sign = np.array([1 if np.linalg.det(np.eye(3)[list(p)]) > 0 else -1 for p in
                     [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]])  # fmt: skip
    left = np.eye(6) - 1 / 6 - np.outer(sign, sign) / 6
    np.testing.assert_allclose(ds.measured_residual.isel(seed=0, learned=0, group=0, missing_dims="ignore"), left, atol=1e-12)
    gap = abs(ds.predicted_residual.sel(form="printed") - ds.predicted_residual.sel(form="derived")).isel(seed=0)
    np.testing.assert_allclose(gap.max(), 2 / 3, rtol=1e-9)


@pytest.mark.slow
def test_irreps_that_are_given_are_those_held():
    default, given = Learned(groups=("7", "A4")), Learned(groups=("7", "A4"), irreps=("1", "0"))
    assert default.learned_irreps(0) == [0, 2] and given.learned_irreps(1) == [0]
    ds = jd.sweep(trial, jd.grid(Learned, groups=("S3",), irreps=("1",), steps=150), 2).sel(form="derived", drop=True)
    sign = np.array([1, -1, -1, 1, 1, -1])  # of the permutations in order: the sign is left to learn
    np.testing.assert_allclose(ds.measured_residual.isel(seed=0, group=0), np.outer(sign, sign) / 6, atol=1e-12)
    assert all(check.passed for check in thm7_modulation.judge(ds))


@pytest.mark.slow
def test_irreps_held_by_default_are_every_second_one():
    default, given = (jd.sweep(trial, jd.grid(Learned, groups=("S3",), irreps=i, steps=100), 1) for i in (None, ("0",)))
    np.testing.assert_array_equal(default.measured_residual, given.measured_residual)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"groups": ("2",)}, "not allowed"),
        ({"groups": ()}, "at least one group"),
        ({"groups": ("S3",), "irreps": ("0+1",)}, "some are held"),
        ({"groups": ("S3",), "irreps": ("2",)}, "S3 has 2 irreps"),
        ({"groups": ("S3",), "irreps": ("x",)}, "S3 has 2 irreps"),
        ({"groups": ("S3",), "irreps": ("0", "1")}, "one entry for each group"),
    ],
)
def test_impossible_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(Learned, **fields)


# The collections' judges on small runs and on few draws.

THM8_COLLECT_CLAIM = next(c for c in thm8_collect.CLAIMS if c.id == "li2.thm8")


@pytest.mark.slow
def test_judges_of_collections_reject_distortions():
    ds = jd.sweep(
        thm8_collect.trial, jd.grid(thm8_collect.Collect, features=4, draws=20_000, rounds=400, chains=128, longest=40), seeds=8
    )
    for form, holds in (("derived", True), ("printed", False)):
        assert all(c.passed for c in thm8_collect.judge_collect(ds.sel(form=form))) == holds
    one = ds.sel(form="derived")
    assert all(c.passed for c in thm8_collect.judge_leader(one))
    for name, judge in (
        ("share", thm8_collect.judge_collect),
        ("floor", thm8_collect.judge_collect),
        ("winner", thm8_collect.judge_leader),
    ):
        assert rejects(judge, one, name, 0.9) and rejects(judge, one, name, 1.1)
    assert rejects(thm8_collect.judge_collect, one, "nodes", 0.7) and rejects(thm8_collect.judge_collect, one, "nodes", 1.4)
    for rival in THM8_COLLECT_CLAIM.rivals.values():
        assert False in [c.passed for c in THM8_COLLECT_CLAIM.judge(rival(one))]


def test_spread_between_seeds_leaves_shares_and_numbers_of_nodes_undecided():
    """Shares and numbers exactly as predicted on average: decided or not by their spread between seeds."""
    base = {"seed": np.arange(8), "way": list(thm8_collect.WAYS), "case": ["given", "equal"]}
    off = np.linspace(-1, 1, 8)[:, None] * np.ones(2)

    def outcome(uneven, spread):
        ds = xr.Dataset(coords=base).assign(predicted_share=(("seed", "feature"), np.full((8, 2), 0.5)))
        ds = ds.assign(measured_share=ds.predicted_share + uneven * off)
        ds = ds.assign(
            predicted_nodes=(("seed", "way"), np.full((8, 2), 3.0)), predicted_floor=(("seed", "case"), np.full((8, 2), 3.0))
        )
        ds = ds.assign(measured_nodes=ds.predicted_nodes * (1 + spread * off), measured_floor=ds.predicted_floor)
        return [c.passed for c in thm8_collect.judge_collect(ds)]

    assert outcome(1e-3, 0.01) == [True] * 5
    assert outcome(0.03, 0.01) == [None, True, True, True, True]
    assert outcome(1e-3, 0.2) == [True, None, None, True, True]


# The irreps that nodes hold: planted maxima, a Fourier transform by NumPy, and a planted training.

IRREPS = {name: decompose(parse(name)) for name in ("7", "S3")}


NODES = {name: jax.jit(lambda w, irreps=irreps: trained_features.nodes(w, irreps)) for name, irreps in IRREPS.items()}


@functools.cache
def features_planted(group):
    """Two nodes at maxima of every irrep but the last, of falling size, and three small ones there."""
    irreps = IRREPS[group]
    chosen = [numbers[0] for numbers in irreps.merged[1:]]
    counts = [2] * (len(chosen) - 1) + [3]

    @jax.jit
    def maxima(key):
        return [energy.random_maximum(key, irreps, k, count) for k, count in zip(chosen, counts, strict=True)]

    *w, dead = jax.device_get(maxima(jax.random.key(0)))
    peaks = [peak.energy for peak in energy.peaks(irreps) if set(peak.irreps) & set(chosen[:-1])]
    return np.concatenate([np.concatenate(w, 1) * np.linspace(1, 0.3, 2 * len(w)), 0.05 * dead], 1), np.mean(peaks)


@pytest.mark.parametrize("group", IRREPS)
def test_planted_maxima_are_held_whatever_their_size_and_dead_nodes_are_not(x64, group):
    w, peak = features_planted(group)
    found = NODES[group](w)
    others = len(IRREPS[group].merged) - 2
    assert (float(found.held), float(found.alive)) == (others, 2 * others), "the last is of dead nodes"
    np.testing.assert_allclose([found.purity, found.energy], [1, peak], rtol=1e-9)


def test_masses_of_a_cyclic_group_are_those_of_numpys_transform(x64):
    w = np.random.default_rng(0).normal(size=(14, 7))
    w /= np.linalg.norm(w, axis=0)
    power = sum(np.abs(np.fft.rfft(part, axis=0)[1:]) ** 2 for part in (w[:7], w[7:])) * 2 / 7
    found = NODES["7"](jnp.asarray(w))
    np.testing.assert_allclose(found.purity, power.max(0).mean(), rtol=1e-9)
    pure = power.max(0) >= trained_features.PURE
    assert float(found.held) == len(set(power.argmax(0)[pure]))


def test_the_trial_looks_at_the_end_of_its_training(monkeypatch, x64):
    curves = {"test_accuracy": jnp.asarray([0.1, 0.9]), "test_loss": jnp.asarray([2.0, 0.5])}
    monkeypatch.setattr(trained_features, "train", lambda s, key: Run(Params(jnp.asarray(features_planted("7")[0]), None), curves))
    monkeypatch.setattr(trained_features, "nodes", lambda w, irreps: NODES[irreps.group.name](w))
    run = trained_features.trial(Training(group="7", share=0.6, epochs=3, every=3), jax.random.key(0))
    assert (float(run.measured["held"].value), float(run.measured["loss"].value)) == (2, 0.5)
    assert float(run.recorded["irreps"].value) == 3 and float(run.recorded["alive"].value) == 4
    np.testing.assert_array_equal(run.recorded["test_accuracy"].value, curves["test_accuracy"])
