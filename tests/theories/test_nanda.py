"""Progress measures: the transformer, its measures and one epoch against plain NumPy; the judge on made-up runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import xarray as xr

import jaxdyn as jd
from jaxdyn.plotting import render
from jaxdyn.theories.nanda import model
from jaxdyn.theories.nanda import progress as progress_progress
from jaxdyn.theories.nanda.dynamics import progress
from jaxdyn.theories.nanda.dynamics import progress as theory
from jaxdyn.theories.nanda.model import Training

# The transformer against three positions written out in NumPy.

P = 7


@pytest.fixture
def weights(x64):
    w = jax.jit(model.init, static_argnums=(1, 2, 3, 4, 5))(jax.random.key(0), P, 8, 2, 12, "float64")
    return w._replace(b_in=0.1 * jnp.arange(12.0), b_out=0.1 * jnp.arange(8.0))


def numpy_logits(w, a, b):
    """All three positions, a causal mask, loops over heads."""
    w = jax.tree.map(np.asarray, w)
    x = w.embed[[a, b, P]] + w.position
    y = x.copy()
    for h in range(w.key.shape[1]):
        q, k, v = x @ w.query[:, h], x @ w.key[:, h], x @ w.value[:, h]
        score = np.where(np.tril(np.ones((3, 3))) > 0, q @ k.T / np.sqrt(k.shape[1]), -np.inf)
        share = np.exp(score - score.max(1, keepdims=True))
        y += share / share.sum(1, keepdims=True) @ v @ w.out[h]
    y = y + np.maximum(y @ w.w_in + w.b_in, 0) @ w.w_out + w.b_out
    return (y @ w.unembed)[-1]


def test_logits_are_those_of_the_whole_transformer(weights):
    pairs = model.all_pairs(P)
    expected = [numpy_logits(weights, int(a), int(b)) for a, b in pairs]
    np.testing.assert_allclose(jax.jit(model.logits)(weights, pairs), expected, rtol=1e-11, atol=1e-12)


def test_loss_is_the_cross_entropy_and_small_ones_keep_their_digits(x64):
    z = jax.random.normal(jax.random.key(1), (5, P), jnp.float64)
    y = jnp.array([0, 3, 6, 2, 2], jnp.int32)
    expected = -scipy.special.log_softmax(z, -1)[np.arange(5), np.asarray(y)]
    loss = jax.jit(model.loss)
    np.testing.assert_allclose(loss(z, y), expected, rtol=1e-12)
    sure = jnp.zeros((1, P), jnp.float32).at[0, 2].set(30.0)
    answer = jnp.array([2], jnp.int32)
    np.testing.assert_allclose(loss(sure, answer)[0], 6 * np.exp(-30.0), rtol=1e-5)
    slope = jax.jit(jax.grad(lambda x: model.loss(x, answer)[0]))(sure)
    np.testing.assert_allclose(slope[0, 2], -6 * np.exp(-30.0), rtol=1e-5)


def test_norm_counts_every_weight(weights):
    assert float(model.norm(weights)) == pytest.approx(sum(float(np.square(x).sum()) for x in weights), rel=1e-12)


# The progress measures against plain sums.

AMPLITUDES, RESTRICTED, EXCLUDED, KEY_PART = map(
    jax.jit, (progress.amplitudes, progress.restricted, progress.excluded, progress.key_part)
)


def cube(seed=2):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(P * P, P)))


def test_key_part_is_the_projection_on_waves_of_the_sum(x64):
    z, keys = cube(), jnp.array([True, False, True])
    s = np.asarray(model.all_pairs(P)).sum(1)
    expected = np.zeros((P * P, P))
    for k in (1, 3):
        for wave in (np.cos(2 * np.pi * k * s / P), np.sin(2 * np.pi * k * s / P)):
            unit = wave / np.linalg.norm(wave)
            expected += np.outer(unit, unit @ np.asarray(z))
    np.testing.assert_allclose(KEY_PART(z, keys), expected, atol=1e-12)
    both = RESTRICTED(z, keys) + EXCLUDED(z, keys)
    np.testing.assert_allclose(both, z + jnp.mean(z, 0), atol=1e-12)


def test_amplitudes_are_least_squares_on_any_pairs(x64):
    z, pairs = cube(3), model.all_pairs(P)
    seen = jnp.arange(P * P) % 3 == 0
    a, b, c = np.ogrid[:P, :P, :P]
    columns = [np.cos(2 * np.pi * k * (a + b - c) / P).reshape(P * P, P)[np.asarray(seen)].ravel() for k in (1, 2, 3)]
    expected = np.linalg.lstsq(np.stack(columns, 1), np.asarray(z)[np.asarray(seen)].ravel(), rcond=None)[0]
    np.testing.assert_allclose(AMPLITUDES(z, pairs, seen), expected, rtol=1e-10)


def test_the_algorithm_is_all_key_part_and_its_amplitudes_come_back(x64):
    alpha, pairs = jnp.array([3.0, 0.0, -2.0]), model.all_pairs(P)
    z = jax.jit(progress.trig_logits, static_argnums=2)(alpha, pairs, P)
    np.testing.assert_allclose(AMPLITUDES(z, pairs), alpha, atol=1e-12)
    keys = progress.key_frequencies(alpha, 0.99)
    np.testing.assert_array_equal(keys, [True, False, True])
    np.testing.assert_allclose(RESTRICTED(z, keys), z, atol=1e-12)
    np.testing.assert_allclose(model.loss(EXCLUDED(z, keys), model.answers(pairs, P)), np.log(P), rtol=1e-12)
    np.testing.assert_array_equal(progress.key_frequencies(alpha, 0.5), [True, False, False])


@pytest.mark.slow
def test_spectrum_obeys_parseval_and_gini_its_limits(x64):
    embed = jax.random.normal(jax.random.key(4), (P, 5), jnp.float64)
    total = jnp.sum(progress.spectrum(embed) ** 2) + P * jnp.sum(jnp.mean(embed, 0) ** 2)
    np.testing.assert_allclose(total, jnp.sum(embed**2), rtol=1e-12)
    assert float(progress.gini(jnp.ones(4, jnp.float64))) == pytest.approx(0, abs=1e-12)
    assert float(progress.gini(jnp.array([0.0, 5.0, 0.0, 0.0]))) == pytest.approx(0.75)
    x = np.random.default_rng(0).uniform(size=9)
    pairwise = np.abs(x[:, None] - x).sum() / (2 * x.size * x.sum())
    assert float(progress.gini(jnp.asarray(x))) == pytest.approx(pairwise)


def test_even_numbers_of_residues_are_refused():
    with pytest.raises(jd.UsageError, match="odd p"):
        progress.frequencies(6)


# One epoch by hand, and what the setting refuses.


@pytest.mark.slow
def test_one_epoch_is_adamw_with_decoupled_decay(x64):
    s = Training(p=P, width=8, heads=2, hidden=12, share=0.5, epochs=1, every=1, dtype="float64")
    run = jax.jit(model.train, static_argnums=0)(s, jax.random.key(6))
    assert len(run.train) == 24 and sorted(np.concatenate([run.train, run.test])) == list(range(49))
    start, end = (jax.tree.map(lambda x, i=i: np.asarray(x)[i], run.weights) for i in (0, 1))
    pairs = model.all_pairs(P)[run.train]
    slope = jax.jit(jax.grad(lambda w: jnp.mean(model.loss(model.logits(w, pairs), model.answers(pairs, P)))))(start)
    for before, after, g in zip(*(jax.tree.map(np.asarray, x) for x in (start, end, slope)), strict=True):
        step = g / (np.abs(g) + 1e-8)  # both moments of the first step are the gradient's own
        np.testing.assert_allclose(after, before - s.lr * (step + s.decay * before), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"p": 8}, "p=8 is not allowed: p is odd"),
        ({"width": 30}, "multiple of heads"),
        ({"share": 0.0}, "pairs to train"),
        ({"share": 1.0}, "pairs to train"),
        ({"epochs": 30, "every": 25}, "multiple of every"),
    ],
)
def test_bad_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(Training, **fields)


@pytest.mark.slow
def test_renaming_residues_moves_logits_answers_and_pairs_together(x64):
    z, order = cube(5), jnp.array([3, 0, 6, 1, 2, 5, 4], jnp.int32)
    new, known, numbers = progress_progress.relabelled(z, order)
    before = model.loss(z, model.answers(model.all_pairs(P), P))
    np.testing.assert_allclose(model.loss(new, known)[numbers], before, rtol=1e-12)
    same = progress_progress.relabelled(z, jnp.arange(P, dtype=jnp.int32))
    np.testing.assert_array_equal(same[0], z)
    np.testing.assert_array_equal(same[2], np.arange(P * P))


@pytest.mark.slow
def test_measures_are_those_of_the_plain_forms(x64):
    """Restricted and trigonometric losses are made from a row for each sum: the same as on every pair."""
    w = jax.jit(lambda key: model.init(key, P, 8, 2, 12, "float64"))(jax.random.key(0))
    training, keys = np.arange(P * P) % 3 > 0, np.array([True, False, True])
    got = jax.jit(progress_progress.measures)(w, keys, training)
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
    out = jax.jit(progress_progress.trial, static_argnums=0)(s, jax.random.key(7))
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
    assert passes(progress_progress.judge_progress, ds)
    assert not passes(progress_progress.judge_progress, progress_progress.UNTRAINED["the network untrained"].breach(ds))
    assert not passes(progress_progress.judge_progress, progress_progress.renamed(ds))
    assert not passes(progress_progress.judge_progress, jd.scaled(predicted_chance=3)(ds))
    assert progress_progress.memorised(ds) < 0.1 < progress_progress.untrained(ds)


def readings(judge, ds):
    return {r.name: r.value for r in judge(ds) if isinstance(r, jd.Reading)}


def test_readings_are_those_of_a_grokked_network():
    ds = grokked().assign(status=("seed", np.zeros(3, int)))
    order, trig = readings(progress_progress.judge_order, ds), readings(progress_progress.judge_trig, ds)
    assert list(order.values()) == [1, 1, 1]
    late = readings(progress_progress.judge_order, jd.swap(restricted_loss="test_loss")(ds))
    assert late[progress_progress.EARLIER.format("restricted")] == 0
    assert trig[progress_progress.EXPLAINED] == pytest.approx(1) and trig[progress_progress.GAP] < 0.1
    assert readings(progress_progress.judge_trig, progress_progress.renamed(ds))[progress_progress.EXPLAINED] < 0.5


def test_times_are_those_that_last():
    ds = grokked()
    assert progress_progress.times(ds)["test"].values.tolist() == [60, 60, 60]
    bounced = ds.test_loss.copy()
    bounced[0, 8] = 9.0
    assert progress_progress.times(ds.assign(test_loss=bounced))["test"].values.tolist() == [90, 60, 60]
    assert progress_progress.since(ds.test_loss < 0).values.tolist() == [np.inf] * 3


def test_figures_can_be_drawn():
    for plot in (progress_progress.plot_losses, progress_progress.plot_trig):
        assert render(plot, grokked()).startswith("<svg")
