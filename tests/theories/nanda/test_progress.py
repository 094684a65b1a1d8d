"""The trial's parts: renamed residues, measures, types and shapes; the judges on made-up runs, and their figures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.plotting import render
from jaxdyn.theories.nanda import model, progress
from jaxdyn.theories.nanda.dynamics import progress as theory
from jaxdyn.theories.nanda.training import Training

P = 7


def cube(seed=2):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(P * P, P)))


@pytest.mark.slow
def test_renaming_residues_moves_logits_answers_and_pairs_together(x64):
    z, order = cube(5), jnp.array([3, 0, 6, 1, 2, 5, 4], jnp.int32)
    new, known, numbers = progress.relabelled(z, order)
    before = model.loss(z, model.answers(model.all_pairs(P), P))
    np.testing.assert_allclose(model.loss(new, known)[numbers], before, rtol=1e-12)
    same = progress.relabelled(z, jnp.arange(P, dtype=jnp.int32))
    np.testing.assert_array_equal(same[0], z)
    np.testing.assert_array_equal(same[2], np.arange(P * P))


@pytest.mark.slow
def test_measures_are_those_of_the_plain_forms(x64):
    """Restricted and trigonometric losses are made from a row for each sum: the same as on every pair."""
    w = jax.jit(lambda key: model.init(key, P, 8, 2, 12, "float64"))(jax.random.key(0))
    training, keys = np.arange(P * P) % 3 > 0, np.array([True, False, True])
    got = jax.jit(progress.measures)(w, keys, training)
    pairs = model.all_pairs(P)
    answers = np.asarray(model.answers(pairs, P))

    @jax.jit
    def plain(w):
        z = model.logits(w, pairs)
        alpha = jnp.where(keys, theory.amplitudes(z, pairs, training), 0)
        cubes = {"all": z, "restricted": theory.restricted(z, keys), "trig": theory.trig_logits(alpha, pairs, P)}
        return z, {name: model.loss(x, answers) for name, x in (cubes | {"excluded": theory.excluded(z, keys)}).items()}

    z, losses = jax.device_get(plain(w))
    parts = {"train": ("all", training), "test": ("all", ~training), "excluded": ("excluded", training)}
    for name, (cube, only) in (parts | {name: (name, ~training) for name in ("restricted", "trig")}).items():
        np.testing.assert_allclose(got[f"{name}_loss"], np.mean(losses[cube][only]), rtol=1e-12)
    right = np.argmax(z, 1) == answers
    for name, only in (("train", training), ("test", ~training)):
        np.testing.assert_allclose(got[f"{name}_accuracy"], np.mean(right[only]), rtol=1e-12)


@pytest.mark.slow
def test_trial_is_complete_and_float32_stays_so(x64):
    s = Training(p=P, width=8, heads=2, hidden=12, share=0.5, epochs=4, every=2)
    out = jax.jit(progress.trial, static_argnums=0)(s, jax.random.key(7))
    arrays = [x.value for group in (out.predicted, out.measured, out.recorded) for x in group.values()]
    assert {x.dtype for x in arrays} == {jnp.dtype("float32")}
    assert all(np.isfinite(x).all() for x in arrays)
    assert out.measured["logits"].value.shape == (25, P) and out.recorded["test_loss"].value.shape == (3,)


def grokked():
    """Made-up runs whose test loss falls at epoch 60, the restricted loss at 30, and whose logits are the algorithm's."""
    epoch, seeds = np.arange(0, 101, 10), 3
    chance = np.log(53.0)
    wave = np.cos(np.linspace(0, 20, 60)).reshape(1, 12, 5) * np.ones((seeds, 1, 1))

    def curve(fall, low, start=chance):
        return ("seed", "epoch"), np.broadcast_to(np.where(epoch < fall, start, low), (seeds, len(epoch)))

    curves = {
        "train_loss": curve(20, 1e-4),
        "test_loss": curve(60, 1e-3),
        "restricted_loss": curve(30, 1e-4),
        "excluded_loss": curve(30, 9.0, 3.0),
        "test_accuracy": curve(60, 1.0, 0.02),
        "gini": curve(60, 0.5, 0.1),
        "norm": curve(60, 500.0, 900.0),
    }
    return xr.Dataset(
        curves
        | {
            "predicted_restricted": curves["restricted_loss"],
            "measured_restricted": curves["restricted_loss"],
            "predicted_chance": ("seed", np.full(seeds, chance)),
            "measured_chance": ("seed", np.full(seeds, 9.0)),
            "predicted_logits": (("seed", "pair", "answer"), wave),
            "measured_logits": (("seed", "pair", "answer"), wave),
            "start_algorithm": (("seed", "pair", "answer"), 0 * wave),
            "start_logits": (("seed", "pair", "answer"), wave[:, ::-1]),
            "renamed_algorithm": (("seed", "pair", "answer"), 0.1 * wave),
            "renamed_logits": (("seed", "pair", "answer"), wave),
            "renamed_restricted": ("seed", np.full(seeds, 3.0)),
            "renamed_excluded": ("seed", np.full(seeds, 1e-4)),
            "keys": (("seed", "frequency"), np.broadcast_to(np.arange(26) < 4, (seeds, 26)).astype(float)),
        },
        coords={"epoch": epoch},
    )


def passes(judge, ds):
    return all(c.passed for c in judge(ds))


def test_judges_uphold_a_grokked_network_and_reject_breaches():
    ds = grokked()
    assert passes(progress.judge_progress, ds)
    assert not passes(progress.judge_progress, progress.UNTRAINED["the network untrained"].breach(ds))
    assert not passes(progress.judge_progress, progress.renamed(ds))
    assert not passes(progress.judge_progress, jd.scaled(predicted_chance=3)(ds))
    assert progress.memorised(ds) < 0.1 < progress.untrained(ds)


def readings(judge, ds):
    return {r.name: r.value for r in judge(ds) if isinstance(r, jd.Reading)}


def test_readings_are_those_of_a_grokked_network():
    ds = grokked().assign(status=("seed", np.zeros(3, int)))
    order, trig = readings(progress.judge_order, ds), readings(progress.judge_trig, ds)
    assert list(order.values()) == [1, 1, 1]
    late = readings(progress.judge_order, jd.swap(restricted_loss="test_loss")(ds))
    assert late[progress.EARLIER.format("restricted")] == 0
    assert trig[progress.EXPLAINED] == pytest.approx(1) and trig[progress.GAP] < 0.1
    assert readings(progress.judge_trig, progress.renamed(ds))[progress.EXPLAINED] < 0.5


def test_times_are_those_that_last():
    ds = grokked()
    assert progress.times(ds)["test"].values.tolist() == [60, 60, 60]
    bounced = ds.test_loss.copy()
    bounced[0, 8] = 9.0
    assert progress.times(ds.assign(test_loss=bounced))["test"].values.tolist() == [90, 60, 60]
    assert progress.since(ds.test_loss < 0).values.tolist() == [np.inf] * 3


def test_figures_can_be_drawn():
    for plot in (progress.plot_losses, progress.plot_trig):
        assert render(plot, grokked()).startswith("<svg")
