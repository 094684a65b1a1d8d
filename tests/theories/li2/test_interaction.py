"""Li2's chapter on Stage III."""

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
from jaxdyn.theories.li2.dynamics.both import Problem
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
from tests.theories.li2.helpers import Small, passes, refuses_opponents, rejects

# Judges of irreps held and of learning rates, on planted runs.

MUON, RATES = diversity.CLAIMS


SEEDS = np.arange(16)


def held(more=2.0, less=0.3):
    """Irreps held and test losses: Muon's nodes hold ``more``, and its loss is lower by exp(-less)."""
    noise = np.random.default_rng(1).normal(size=(2, 2, 16))
    irreps = 6 + np.array([0, more])[:, None] + 0.3 * noise[0]
    loss = np.exp(np.array([0, -less])[:, None] + 0.05 * noise[1])
    axes = ("optimizer", "seed")
    return xr.Dataset(
        {"measured_held": (axes, irreps), "measured_loss": (axes, loss)}, {"optimizer": ["adam", "muon"], "seed": SEEDS}
    )


def rated(energy=1.5, rates=(0.1, 0.2, 0.3)):
    """Runs that generalise at every rate; ``energy`` of nodes at the largest rate, 1 at others."""
    noise = np.random.default_rng(2).normal(size=(len(rates), 16))
    mean = np.append(np.ones(len(rates) - 1), energy)[:, None] + 0.02 * noise
    accuracy = np.ones((len(rates), 16, 2))
    data = {"energy": (("lr", "seed"), mean), "test_accuracy": (("lr", "seed", "epoch"), accuracy)}
    return xr.Dataset(data, {"lr": list(rates), "seed": SEEDS, "epoch": [0, 1]})


@pytest.mark.parametrize(
    ("claim", "right", "wrong"), [(MUON, held(), held(more=0.0)), (RATES, rated(), rated(energy=0.8))], ids=["muon", "rates"]
)
def test_a_judge_upholds_what_is_planted_and_refuses_others(claim, right, wrong):
    assert passes(claim, right)
    assert not passes(claim, wrong)
    refuses_opponents(claim, right)


def test_a_run_that_memorises_at_one_rate_shows_in_its_share():
    ds = rated()
    spoiled = ds.assign(test_accuracy=ds.test_accuracy.where(ds.lr != 0.2, 0.5))
    assert [c.passed for c in RATES.judge(spoiled)] == [True, False, True, True]


def test_too_few_runs_decide_nothing():
    with pytest.raises(jd.Inconclusive, match="seed"):
        diversity.judge_held(held().isel(seed=slice(8)))


# The polar factor's judges on small runs; settings that are refused.


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


def test_signs_along_training_with_all_pairs_counted():
    small = {"group": "5", "samples": 12, "hidden": 8, "counted": 28, "records": 2, "every": 3}
    ds = jd.sweep(repulsion_raw.trial, jd.grid(repulsion_raw.Similar, activation=["square", "relu"], **small), seeds=2)
    assert set(np.unique(ds.measured_sign)) <= {-1.0, 0.0, 1.0} and list(ds.epoch) == [0, 3, 6]
    agree = (ds.measured_sign == ds.predicted_sign).mean("pair")
    np.testing.assert_allclose(agree.sel(which="most similar"), agree.sel(which="random"))
    values = {c.name: c.value for c in repulsion_raw.judge(ds)}
    assert values["its excess over random pairs, at the end"] == 0


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


def test_curves_vanish_at_the_ridge_solution_and_guessing_costs_one(x64):
    samples = model.pairs(5)
    start = model.init(jax.random.key(0), 5, 6, "float64")
    y = model.targets(parse("5"), samples)
    given = Problem(samples, y, *(jnp.asarray(x, jnp.float64) for x in (0.2, 0.1, 1.0)))
    best = start._replace(v=ridge.solution(model.features(start.w, samples), y, given.eta))
    curves = jax.jit(stage3.curves)
    assert curves(best, given, samples, y)["apart"] < 1e-12
    silent = curves(start._replace(v=jnp.zeros_like(start.v)), given, samples, y)
    np.testing.assert_allclose(silent["test"], 1)
    assert silent["sent"] == 0


def test_flow_and_descent_are_close_and_the_frozen_flow_is_not(x64):
    run = jax.jit(stage3.trial, static_argnums=0)(TINY, jax.random.key(1))
    trained, flow = (np.asarray(side["weights"].value) for side in (run.measured, run.predicted))
    assert trained.shape == (1, 15 * 5)
    assert np.abs(trained - flow).max() < 0.05 * np.abs(trained - np.asarray(run.recorded["frozen"].value)).max()


@pytest.mark.parametrize("wrong", [{"records": 30}, {"share": 1.0}])
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(jd.UsageError):
        stage3.Stages(**wrong)


FLOW, TIMES, DECAYS = stage3.CLAIMS


def weights(order=1.0, bias=0.0):
    """Trained weights off the flow's by the step size to a power, a smaller second-order part, and a bias."""
    rng = np.random.default_rng(0)
    lr = np.array([0.02, 0.01, 0.005])
    flow, first, second = rng.normal(size=(3, 8, 1, 3, 10))
    off = first * lr[:, None, None] ** order + second * lr[:, None, None] ** (order + 1) + bias
    axes, records = ("seed", "lr", "time", "entry"), ("seed", "lr", "moment")
    predicted, one = np.broadcast_to(flow, off.shape), np.ones((8, 3, 4))
    data = {"measured_weights": (axes, flow + off), "predicted_weights": (axes, predicted)}
    data |= {"first": (axes, 0 * predicted), "frozen": (axes, predicted + 1)}
    names = [f"{kind}_{name}" for kind in ("curve", "flow") for name in ("accuracy", "apart", "test", "sent")]
    data |= {name: (records, one) for name in names} | {"t": (records, one * np.arange(4.0))}
    return xr.Dataset(data, {"lr": lr, "seed": np.arange(8)})


def times(powers=(-1.0, 0.0, 0.0), field="eta"):
    """Times of the stages that are powers of a field, with noise of one in a hundred."""
    rng = np.random.default_rng(0)
    eta = np.array([0.2, 0.4, 0.8])
    value = eta[:, None] ** np.array(powers) * np.exp(0.01 * rng.normal(size=(8, 3, 3)))
    axes = ("seed", field, "stage")
    data = {"measured_stage_time": (axes, value), "predicted_stage_time": (axes, value)}
    return xr.Dataset(
        data | {"curve_accuracy": (("seed", field, "moment"), np.ones((8, 3, 4)))},
        {field: eta, "stage": list(stage3.STAGES), "seed": np.arange(8)},
    )


def without_decay():
    return times((0.0, 0.0, 1.0), "decay")


@pytest.mark.parametrize(("order", "bias", "outcome"), [(1.0, 0.0, True), (2.0, 0.0, False), (0.5, 0.0, False), (1.0, 0.01, False)])
def test_order_one_and_the_limit_decide(order, bias, outcome):
    assert passes(FLOW, weights(order, bias)) == outcome


def test_rivals_are_refused():
    for claim, right in ((FLOW, weights()), (TIMES, times()), (DECAYS, without_decay())):
        for name, rival in claim.rivals.items():
            assert False in [check.passed for check in claim.judge(rival(right))], name


def test_slopes_are_those_planted():
    np.testing.assert_allclose(stage3.slopes(times((-1.0, 0.5, 0.2))).mean("seed"), (-1.0, 0.5, 0.2), atol=0.02)
    assert passes(TIMES, times())
    assert not passes(TIMES, times((-1.0, 0.5, 0.0)))
    assert passes(DECAYS, without_decay())
    assert [c.passed for c in DECAYS.judge(times((1.0, 0.0, 0.0), "decay"))] == [True, False, True]
    assert list(DECAYS.found) == [c.name for c in DECAYS.judge(without_decay()) if not c.gate]


def test_too_few_runs_and_steps_that_do_not_halve_decide_nothing():
    with pytest.raises(jd.Inconclusive):
        TIMES.judge(times().isel(seed=slice(4)))
    with pytest.raises(jd.Inconclusive):
        FLOW.judge(weights().assign_coords(lr=[0.02, 0.01, 0.002]))


@pytest.mark.parametrize(("claim", "data"), [(FLOW, weights), (TIMES, times), (DECAYS, without_decay)])
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


@pytest.mark.parametrize(("factor", "outcome"), [(1.0, True), (0.95, True), (0.8, False), (0.5, False), (1.3, False)])
def test_a_tenth_decides(factor, outcome):
    assert {c.passed for c in CLAIM.judge(planted_gains(factor))} == {outcome}


def test_the_rival_halves_what_others_hold():
    (rival,) = CLAIM.rivals.values()
    np.testing.assert_allclose(suppression.ratio(rival(planted_gains(1.0))), np.log(0.5))


def test_too_few_seeds_decide_nothing():
    with pytest.raises(jd.Inconclusive):
        CLAIM.judge(planted_gains(1.0, seeds=8))


def test_the_figure_has_data():
    fig = Figure()
    CLAIM.plot(planted_gains(1.0), fig)
    assert all(ax.has_data() for ax in fig.axes)


# Repulsion's judge on small runs; settings that are refused.


def test_judge_of_pairs_rejects_distortions():
    pairs = jd.sweep(thm6_repulsion.trial, jd.grid(thm6_repulsion.Pairs, activation=["silu"], nodes=[12], capacity=16), seeds=2)
    assert all(c.passed for c in thm6_repulsion.judge_identity(pairs))
    assert rejects(thm6_repulsion.judge_identity, pairs, "b", 1 + 1e-9)


@pytest.mark.parametrize("fields", [{"nodes": 129.0}, {"samples": 50}])
def test_more_than_there_are_are_refused(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.*not allowed: .* is at most"):
        thm6_repulsion.Pairs(**fields)


# Top-down modulation: residuals on S3, the judges on small runs, irreps that are given, settings that are refused.

SMALL = Small({trial: jd.grid(Learned, groups=("S3",), steps=150)})


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_a_judge_upholds_what_is_right_and_refutes_what_is_printed(claim):
    SMALL.upholds_what_is_right(claim)


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


def test_irreps_that_are_given_are_those_held():
    default, given = Learned(groups=("7", "A4")), Learned(groups=("7", "A4"), irreps=("1", "0"))
    assert default.learned_irreps(0) == [0, 2] and given.learned_irreps(1) == [0]
    ds = jd.sweep(trial, jd.grid(Learned, groups=("S3",), irreps=("1",), steps=150), 2).sel(form="derived", drop=True)
    sign = np.array([1, -1, -1, 1, 1, -1])  # of the permutations in order: the sign is left to learn
    np.testing.assert_allclose(ds.measured_residual.isel(seed=0, group=0), np.outer(sign, sign) / 6, atol=1e-12)
    assert all(check.passed for check in thm7_modulation.judge(ds))


def test_irreps_held_by_default_are_every_second_one():
    default, given = (jd.sweep(trial, jd.grid(Learned, groups=("S3",), irreps=i, steps=20), 1) for i in (None, ("0",)))
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


def test_judges_of_collections_reject_distortions():
    ds = jd.sweep(
        thm8_collect.trial, jd.grid(thm8_collect.Collect, features=4, draws=8000, rounds=400, chains=128, longest=40), seeds=8
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


def test_few_draws_leave_shares_and_numbers_of_nodes_undecided():
    """Shares and numbers exactly as predicted on average: decided or not by their spread and by the number of draws."""
    base = {"seed": np.arange(8), "way": list(thm8_collect.WAYS), "case": ["given", "equal"]}
    off = np.linspace(-1, 1, 8)[:, None] * np.ones(2)

    def outcome(draws, spread):
        ds = xr.Dataset(coords=base).assign(predicted_share=(("seed", "feature"), np.full((8, 2), 0.5)))
        ds = ds.assign(measured_share=ds.predicted_share, draws=("seed", np.full(8, draws)))
        ds = ds.assign(
            predicted_nodes=(("seed", "way"), np.full((8, 2), 3.0)), predicted_floor=(("seed", "case"), np.full((8, 2), 3.0))
        )
        ds = ds.assign(measured_nodes=ds.predicted_nodes * (1 + spread * off), measured_floor=ds.predicted_floor)
        return [c.passed for c in thm8_collect.judge_collect(ds)]

    assert outcome(1e4, 0.01) == [True] * 5
    assert outcome(1e3, 0.01) == [None, True, True, True, True]
    assert outcome(1e4, 0.2) == [True, None, None, True, True]


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
