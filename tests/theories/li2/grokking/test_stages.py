"""What is recorded along training against NumPy and autodiff, when layers move most, and the judges on planted curves."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model, training
from jaxdyn.theories.li2.grokking import stages
from jaxdyn.theories.li2.training import Run, Training
from tests.theories.li2.helpers import passes, refuses_opponents

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
    known = np.asarray(d.number).ravel() < int(d.count)
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
    other = d._replace(labels=jnp.where(d.number < d.count, d.labels, (d.labels + 1) % 5))
    again = WATCH(now, before, other)
    for name, value in seen.items():
        np.testing.assert_allclose(again[name], value, rtol=1e-12, err_msg=name)
    assert parse(S.group).order ** 2 > int(d.count), "there are such pairs"


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
    for opponent in (stages.EXCHANGED, *ORDER.rivals.values()):
        assert False in [c.passed for c in ORDER.judge(opponent(right))]
    gates = [c.passed for c in ORDER.judge(layered(first=1.0)) if c.gate]
    assert gates == [True, False], "Adam's first steps may not be the largest"
