"""Li2's chapter on grokking as a whole."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model, training
from jaxdyn.theories.li2.dynamics.retention import order_share
from jaxdyn.theories.li2.grokking import phase_decay, stages, zero_init
from jaxdyn.theories.li2.training import Run, Training
from tests.theories.li2.helpers import opponents, passes, read, refused, refuses_opponents

# How many pairs networks need: the trial on planted curves, p_50 of planted transitions, judges on planted laws and decay.


@pytest.mark.parametrize(("group", "order"), [("13", 13), ("D12", 24), ("5x5", 25)])
def test_the_trial_records_the_share_its_critical_value_and_all_curves(monkeypatch, x64, group, order):
    s = Training(group=group, share=0.7, critical=True, epochs=4, every=2)
    curves, asked = {"train_accuracy": jnp.arange(3.0), "test_accuracy": jnp.arange(3.0) / 2}, []

    def train(s, key, known):
        asked.append(known)
        return Run(None, curves)

    monkeypatch.setattr(phase_decay, "train", train)
    run = phase_decay.trial(s, jax.random.key(0))
    critical = 2.7482 * math.log(order) / order
    assert asked == [1.0] and float(run.recorded["order"].value) == order
    np.testing.assert_allclose(run.predicted["critical"].value, critical, rtol=1e-12)
    np.testing.assert_allclose(run.measured["critical"].value, 0.7 * critical, rtol=1e-12)
    for name, curve in curves.items():
        np.testing.assert_array_equal(run.recorded[name].value, curve)


PHASE, DECAY, LONGER = phase_decay.CLAIMS


def planted(excess=0.0, sooner=0.3, noise=0.01, dihedral=1.0):
    """Logistic transitions at p_c M^excess, lower by ``sooner`` in ln p after all of the training."""
    rng = np.random.default_rng(3)
    groups = ["13", "23", "37", "53", "5x5", "D12"]
    order = np.array([13, 23, 37, 53, 25, 24.0])
    critical = np.array([order_share(int(m)) for m in order])
    share, epoch = np.geomspace(0.5, 2, 9), np.arange(0, 900, 100)
    middle = np.log(critical * (order / 24) ** excess * np.where(order == 24, dihedral, 1.0))
    middle = middle[:, None, None] + noise * rng.standard_normal((6, 8, 1)) + sooner * (0.5 - epoch / 800)
    x = np.log(share[:, None] * critical)[:, :, None, None]
    accuracy = 1 / (1 + np.exp(-(x - middle) / 0.03))
    coords = {"share": share, "group": groups, "seed": np.arange(8), "epoch": epoch}
    axes = ("share", "group", "seed", "epoch")
    data = {
        "test_accuracy": (axes, accuracy),
        "measured_critical": (axes[:3], (share[:, None] * critical)[..., None] + np.zeros(8)),
    }
    data |= {n: (axes[:3], v[:, None] + np.zeros((9, 6, 8))) for n, v in (("predicted_critical", critical), ("order", order))}
    return xr.Dataset(data, coords)


@pytest.mark.slow
def test_planted_powers_and_ratios_are_read():
    order = np.array([13, 23, 37, 53.0])
    law = np.polyfit(np.log(order), np.log(np.log(order) / order), 1)[0]
    for excess in (0.0, 0.4):
        found = read(PHASE, planted(excess=excess))
        powers = [one.value for name, one in found.items() if "power of M" in name and "largest" not in name]
        np.testing.assert_allclose(powers, law + excess, atol=0.03)
        assert all(one.interval[1] - one.interval[0] < 0.2 for one in found.values())
    np.testing.assert_allclose(phase_decay.halves(planted()).sel(group="37").mean(), order_share(37) * np.exp(-0.15), rtol=0.06)
    found = read(PHASE, planted(sooner=0.2, dihedral=1.8))
    np.testing.assert_allclose(found[phase_decay.LONGER].value, -0.15, atol=0.03)
    np.testing.assert_allclose(found[phase_decay.OTHER.format("D12")].value, np.log(1.8), atol=0.05)
    np.testing.assert_allclose(found[phase_decay.OTHER.format("5x5")].value, 0, atol=0.05)


@pytest.mark.slow
def test_rivals_are_told_apart_unless_they_are_what_is_planted():
    for excess, own in ((0.0, "Theorem 4: as ln M / M"), (0.4, None)):
        right = planted(excess=excess)
        for name, rival in opponents(PHASE).items():
            assert refused(PHASE, right, rival) == (name != own), name


def test_what_rivals_say_of_other_groups():
    assert phase_decay.squares("D12") == pytest.approx(np.log(4)) and phase_decay.squares("5x5") == 0
    assert phase_decay.cyclic_part("D12") == pytest.approx(np.log(order_share(12) / order_share(24)))


def test_few_transitions_beyond_the_shares_are_passed_over_and_many_decide_nothing():
    ds = planted()
    for seeds, few in (([3], True), ([1, 2, 3], False)):
        beyond = ds.seed.isin(seeds) & (ds.group == "37")
        gate, *checks = phase_decay.judge_phase(ds.assign(test_accuracy=ds.test_accuracy.where(~beyond, 0.0)))
        assert gate.gate and gate.passed == few and np.isclose(gate.value, len(seeds) / (ds.sizes["seed"] * ds.sizes["group"]))
        assert np.isfinite([c.value for c in checks]).all()
    with pytest.raises(jd.Inconclusive, match="at least 3 points"):
        phase_decay.judge_phase(ds.isel(share=slice(0, 4)))


def test_figures_can_be_drawn():
    for claim, ds in ((PHASE, planted()), (DECAY, decays())):
        fig = Figure()
        claim.plot(ds, fig)
        assert all(ax.has_data() for ax in fig.axes)


def decays(top=0.1):
    ends = {"both": 1.0, "top": top, "hidden": 0.97, "neither": 0.08}
    test = np.array([*ends.values()])[:, None, None] * np.ones((4, 8, 3))
    coords = {"decayed": list(ends), "seed": np.arange(8), "epoch": [0, 1, 2]}
    names = ("test_accuracy", "train_accuracy")
    return xr.Dataset({n: (("decayed", "seed", "epoch"), v) for n, v in zip(names, (test, 0 * test + 1), strict=True)}, coords)


def test_decay_is_judged_layer_by_layer():
    assert all(c.passed for c in DECAY.judge(decays()))
    assert not all(c.passed for c in DECAY.judge(decays(top=1.0)))
    refuses_opponents(DECAY, decays())
    with pytest.raises(jd.Inconclusive, match="decayed"):
        DECAY.judge(decays().isel(decayed=[0, 3]))


def longer(end=0.97, neither=0.08, early=0.2):
    """Decay of the top layer alone generalises late, no decay never."""
    epochs = np.arange(0, 6401, 200)
    top = np.where(epochs <= 800, early * epochs / 800, early + (end - early) * (epochs - 800) / 5600)
    noise = 0.005 * np.random.default_rng(4).normal(size=(2, 6, epochs.size))
    curves = np.stack([top, np.full(epochs.size, neither)])[:, None] + noise
    dims, coords = ("decayed", "seed", "epoch"), {"decayed": ["top", "neither"], "epoch": epochs}
    return xr.Dataset({"test_accuracy": (dims, curves), "train_accuracy": (dims, np.ones_like(curves))}, coords)


def test_decay_of_the_top_alone_is_judged_early_and_late():
    assert all(c.passed for c in LONGER.judge(longer()))
    for wrong in (longer(end=0.6), longer(neither=0.3), longer(early=0.7)):
        assert not all(c.passed for c in LONGER.judge(wrong))
    refuses_opponents(LONGER, longer())
    with pytest.raises(jd.Inconclusive, match="decayed"):
        LONGER.judge(longer().isel(decayed=[0]))


# What is recorded along training against NumPy and autodiff, when layers move most, and the judges on planted curves.

S = Training(group="5", hidden=6, share=0.6, epochs=4, every=1, dtype="float64")


WATCH = jax.jit(lambda now, before, d: stages.watch(S, now, before, d))


@jax.jit
def drawn(key):
    """Data, weights now and at the record before."""
    k_data, k_now, k_before = jax.random.split(key, 3)
    return training.data(S, k_data), *(model.init(k, 5, S.hidden, S.dtype) for k in (k_now, k_before))


def watched():
    d, now, before = drawn(jax.random.key(3))
    return d, now, before, WATCH(now, before, d)


def test_norms_and_overlaps_are_those_of_dense_matrices(x64):
    d, now, before, seen = watched()
    known = np.asarray(d.number).ravel() < int(d.used)
    samples, labels = np.asarray(d.samples).reshape(-1, 2)[known], np.asarray(d.labels).ravel()[known]
    w, v = map(np.asarray, now)
    f = (w[samples[:, 0]] + w[5 + samples[:, 1]]) ** 2
    tilde, y = f - f.mean(0), np.eye(5)[labels] - np.eye(5)[labels].mean(0)
    slope = jax.jit(jax.grad(model.loss))(now, samples, labels)
    expected = {
        "sent": np.linalg.norm((y - tilde @ v) @ v.T),
        "pull_v": np.linalg.norm(slope.v),
        "pull_w": np.linalg.norm(slope.w),
        "change_v": np.linalg.norm(v - np.asarray(before.v)),
        "change_w": np.linalg.norm(w - np.asarray(before.w)),
    }
    for name, gram in (("nodes", tilde.T @ tilde), ("samples", tilde @ f.T)):
        off = ~np.eye(len(gram), dtype=bool)
        expected[name] = np.abs(gram[off]).mean() / np.abs(np.diag(gram)).mean()
    for name, value in expected.items():
        np.testing.assert_allclose(seen[name], value, rtol=1e-9, err_msg=name)
    gram = tilde.T @ tilde
    above = np.abs(gram[np.triu_indices(len(gram), 1)])
    np.testing.assert_allclose(seen["high"], np.quantile(above, stages.HIGH) / np.diag(gram).mean(), rtol=1e-9)


def test_test_pairs_do_not_show(x64):
    """With all labels but those trained on changed, nothing that is watched changes."""
    d, now, before, seen = watched()
    other = d._replace(labels=jnp.where(d.number < d.used, d.labels, (d.labels + 1) % 5))
    again = WATCH(now, before, other)
    for name, value in seen.items():
        np.testing.assert_allclose(again[name], value, rtol=1e-12, err_msg=name)
    assert parse(S.group).order ** 2 > int(d.used), "there are such pairs"


def test_the_trial_records_when_layers_move_most(monkeypatch, x64):
    curves = {name: jnp.asarray(values) for name, values in {
        "change_v": [0.0, 3, 1], "change_w": [0.0, 1, 2], "pull_v": [5.0, 4, 3], "pull_w": [2.0, 6, 1],
        "nodes": [0.1, 0.3, 0.2], "samples": [0.5, 0.4, 0.1],
    }.items()}  # fmt: skip
    monkeypatch.setattr(stages, "train", lambda s, key, watch: Run(None, curves))
    seen = stages.trial(dataclasses.replace(S, every=2), jax.random.key(0))
    found = {name: float(seen.recorded[name].value) for name in ("peak_v", "peak_w", "rise")}
    assert found == {"peak_v": 2, "peak_w": 4, "rise": 3}
    assert [float(seen.measured[name].value) for name in ("nodes", "samples")] == [0.3, 0.5]


CLAIM, ORDER = stages.CLAIMS


EPOCHS = np.arange(41)


def staged(peak=10, half=20):
    """A signal that doubles until ``peak`` and then falls, and accuracies that pass one half at ``half``."""
    sent = np.where(EPOCHS <= peak, 1 + EPOCHS / peak, 2 * np.exp(-(EPOCHS - peak) / 8.0))
    curves = {"sent": sent, "high": 1 + 0 * sent, "test_accuracy": 1 / (1 + np.exp(half - EPOCHS)), "train_accuracy": EPOCHS > 2}
    ds = xr.Dataset({f"curve_{n}": (("seed", "epoch"), np.tile(c * 1.0, (16, 1))) for n, c in curves.items()})
    return ds.assign(measured_nodes=("seed", np.full(16, 0.05))).assign_coords(seed=np.arange(16), epoch=EPOCHS)


def test_the_judge_upholds_what_is_planted_and_refuses_others():
    assert passes(CLAIM, staged())
    assert not passes(CLAIM, staged(peak=25, half=20))
    refuses_opponents(CLAIM, staged())


def test_the_epoch_at_which_a_level_is_reached():
    ds = staged(half=20)
    assert np.all(stages.reached(ds, "test_accuracy", 0.5) == 20)
    assert np.all(np.isnan(stages.reached(ds, "test_accuracy", 1.5)))


def test_networks_that_do_not_generalise_fail_the_gate():
    ds = staged()
    gate = stages.judge(ds.assign(curve_test_accuracy=0.5 * ds.curve_test_accuracy))[0]
    assert gate.gate and not gate.passed


def layered(gradient=3.7, change=1.2, noise=0.2, first=0.9):
    """Curves of both layers with smooth peaks near epoch 47, those of V ``gradient`` and ``change`` epochs earlier."""
    rng = np.random.default_rng(1)
    epoch = np.arange(101)

    def bell(earlier):
        return 1 / (1 + ((epoch - 47 + earlier + noise * rng.standard_normal((10, 1))) / 20) ** 2)

    curves = {"pull_v": bell(gradient), "pull_w": bell(0), "change_v": bell(change), "change_w": bell(0)}
    for name in ("change_v", "change_w"):
        curves[name][:, :2] = 0, first
    ds = xr.Dataset({f"curve_{name}": (("seed", "epoch"), value) for name, value in curves.items()})
    return ds.assign(curve_test_accuracy=0 * ds.curve_pull_v + 1).assign_coords(seed=np.arange(10), epoch=epoch)


def test_peaks_lie_between_records():
    ds = layered(noise=0.0)
    np.testing.assert_allclose(stages.largest(ds, "pull_v"), 47 - 3.7, atol=0.01)
    np.testing.assert_allclose(
        stages.largest(ds.assign_coords(epoch=10 + 2 * ds.epoch), "change_v"), 10 + 2 * (47 - 1.2), atol=0.02
    )


def test_the_order_of_the_layers_is_judged_and_opponents_are_refused():
    right = layered()
    assert passes(ORDER, right)
    assert [c.passed for c in ORDER.judge(layered(gradient=0.0)) if not c.gate] == [False, True]
    assert [c.passed for c in ORDER.judge(layered(change=-1.0)) if not c.gate] == [True, False]
    refuses_opponents(ORDER, right)
    gates = [c.passed for c in ORDER.judge(layered(first=1.0)) if c.gate]
    assert gates == [True, False], "Adam's first steps may not be the largest"


# The judge of the zero start, on planted times.

(ZERO_INIT_CLAIM,) = zero_init.CLAIMS


def timed(few=(800, 650), many=(50, 38)):
    """Epochs from the normal start and from zero, on few and on many pairs."""
    noise = np.random.default_rng(0).normal(size=(2, 2, 16))
    time = np.array([[few[1], few[0]], [many[1], many[0]]])[..., None] + np.array([10, 2.0])[:, None, None] * noise
    coords = {"share": [0.4, 0.9], "top": [0.0, 1.0], "seed": np.arange(16)}
    ds = xr.Dataset({"measured_time": (("share", "top", "seed"), time)}, coords)
    return ds.assign(accuracy=xr.ones_like(ds.measured_time).expand_dims(epoch=[0, 1]))


def test_zero_init_the_judge_upholds_what_is_planted_and_refuses_others():
    assert passes(ZERO_INIT_CLAIM, timed())
    assert not passes(ZERO_INIT_CLAIM, timed(many=(200, 100)))
    refuses_opponents(ZERO_INIT_CLAIM, timed())


def test_zero_init_networks_that_do_not_generalise_fail_the_gate():
    ds = timed()
    gate = zero_init.judge(ds.assign(accuracy=0 * ds.accuracy))[0]
    assert gate.gate and not gate.passed
