"""The transformer against three positions written out in NumPy, the progress measures against plain sums, and the judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.nanda import claims, model, progress, training
from jaxdyn.theories.nanda.training import Training

P = 7
TINY = Training(p=P, width=8, heads=2, hidden=12, share=0.5, epochs=4, every=2, dtype="float64")


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
    expected = -np.asarray(jax.nn.log_softmax(z))[np.arange(5), np.asarray(y)]
    np.testing.assert_allclose(model.loss(z, y), expected, rtol=1e-12)
    sure = jnp.zeros((1, P), jnp.float32).at[0, 2].set(30.0)
    answer = jnp.array([2], jnp.int32)
    np.testing.assert_allclose(model.loss(sure, answer)[0], 6 * np.exp(-30.0), rtol=1e-5)
    slope = jax.grad(lambda x: model.loss(x, answer)[0])(sure)
    np.testing.assert_allclose(slope[0, 2], -6 * np.exp(-30.0), rtol=1e-5)


def test_norm_counts_every_weight(weights):
    assert float(model.norm(weights)) == pytest.approx(sum(float(np.square(x).sum()) for x in weights), rel=1e-12)


def cube(seed=2):
    return jax.random.normal(jax.random.key(seed), (P * P, P), jnp.float64)


def test_key_part_is_the_projection_on_waves_of_the_sum(x64):
    z, keys = cube(), jnp.array([True, False, True])
    s = np.asarray(model.all_pairs(P)).sum(1)
    expected = np.zeros((P * P, P))
    for k in (1, 3):
        for wave in (np.cos(2 * np.pi * k * s / P), np.sin(2 * np.pi * k * s / P)):
            unit = wave / np.linalg.norm(wave)
            expected += np.outer(unit, unit @ np.asarray(z))
    np.testing.assert_allclose(progress.key_part(z, keys), expected, atol=1e-12)
    both = progress.restricted(z, keys) + progress.excluded(z, keys)
    np.testing.assert_allclose(both, z + jnp.mean(z, 0), atol=1e-12)


def test_amplitudes_are_least_squares_on_any_pairs(x64):
    z, pairs = cube(3), model.all_pairs(P)
    seen = jnp.arange(P * P) % 3 == 0
    a, b, c = np.ogrid[:P, :P, :P]
    columns = [np.cos(2 * np.pi * k * (a + b - c) / P).reshape(P * P, P)[np.asarray(seen)].ravel() for k in (1, 2, 3)]
    expected = np.linalg.lstsq(np.stack(columns, 1), np.asarray(z)[np.asarray(seen)].ravel(), rcond=None)[0]
    np.testing.assert_allclose(progress.amplitudes(z, pairs, seen), expected, rtol=1e-10)


def test_the_algorithm_is_all_key_part_and_its_amplitudes_come_back(x64):
    alpha, pairs = jnp.array([3.0, 0.0, -2.0]), model.all_pairs(P)
    z = progress.trig_logits(alpha, pairs, P)
    np.testing.assert_allclose(progress.amplitudes(z, pairs), alpha, atol=1e-12)
    keys = progress.key_frequencies(alpha, 0.99)
    np.testing.assert_array_equal(keys, [True, False, True])
    np.testing.assert_allclose(progress.restricted(z, keys), z, atol=1e-12)
    np.testing.assert_allclose(model.loss(progress.excluded(z, keys), training.answers(pairs, P)), np.log(P), rtol=1e-12)
    np.testing.assert_array_equal(progress.key_frequencies(alpha, 0.5), [True, False, False])


def test_spectrum_obeys_parseval_and_gini_its_limits(x64):
    embed = jax.random.normal(jax.random.key(4), (P, 5), jnp.float64)
    total = jnp.sum(progress.spectrum(embed) ** 2) + P * jnp.sum(jnp.mean(embed, 0) ** 2)
    np.testing.assert_allclose(total, jnp.sum(embed**2), rtol=1e-12)
    assert float(progress.gini(jnp.ones(4, jnp.float64))) == pytest.approx(0, abs=1e-12)
    assert float(progress.gini(jnp.array([0.0, 5.0, 0.0, 0.0]))) == pytest.approx(0.75)
    x = np.random.default_rng(0).uniform(size=9)
    pairwise = np.abs(x[:, None] - x).sum() / (2 * x.size * x.sum())
    assert float(progress.gini(jnp.asarray(x))) == pytest.approx(pairwise)


def test_renaming_residues_moves_logits_answers_and_pairs_together(x64):
    z, order = cube(5), jnp.array([3, 0, 6, 1, 2, 5, 4], jnp.int32)
    new, known, numbers = claims.relabelled(z, order)
    before = model.loss(z, training.answers(model.all_pairs(P), P))
    np.testing.assert_allclose(model.loss(new, known)[numbers], before, rtol=1e-12)
    same = claims.relabelled(z, jnp.arange(P, dtype=jnp.int32))
    np.testing.assert_array_equal(same[0], z)
    np.testing.assert_array_equal(same[2], np.arange(P * P))


def test_one_epoch_is_adamw_with_decoupled_decay(x64):
    s = Training(p=P, width=8, heads=2, hidden=12, share=0.5, epochs=1, every=1, dtype="float64")
    run = jax.jit(training.train, static_argnums=0)(s, jax.random.key(6))
    assert len(run.train) == 24 and sorted(np.concatenate([run.train, run.test])) == list(range(49))
    start, end = (jax.tree.map(lambda x, i=i: np.asarray(x)[i], run.weights) for i in (0, 1))
    pairs = model.all_pairs(P)[run.train]
    slope = jax.jit(jax.grad(lambda w: jnp.mean(model.loss(model.logits(w, pairs), training.answers(pairs, P)))))(start)
    for before, after, g in zip(*(jax.tree.map(np.asarray, x) for x in (start, end, slope)), strict=True):
        step = g / (np.abs(g) + 1e-8)  # both moments of the first step are the gradient's own
        np.testing.assert_allclose(after, before - s.lr * (step + s.decay * before), rtol=1e-6, atol=1e-9)


def test_trial_is_complete_and_float32_stays_so(x64):
    s = Training(p=P, width=8, heads=2, hidden=12, share=0.5, epochs=4, every=2)
    out = jax.jit(claims.trial, static_argnums=0)(s, jax.random.key(7))
    arrays = [x.value for group in (out.predicted, out.measured, out.recorded) for x in group.values()]
    assert {x.dtype for x in arrays} == {jnp.dtype("float32")}
    assert all(np.isfinite(x).all() for x in arrays)
    assert out.measured["logits"].value.shape == (25, P) and out.recorded["test_loss"].value.shape == (3,)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"p": 8}, "got p=8"),
        ({"width": 30}, "multiple of heads"),
        ({"share": 0.0}, "pairs to train"),
        ({"share": 1.0}, "pairs to train"),
        ({"epochs": 30, "every": 25}, "multiple of every"),
    ],
)
def test_bad_settings_are_refused(fields, words):
    with pytest.raises(UsageError, match=words):
        jd.grid(Training, **fields)
    with pytest.raises(UsageError, match="odd p"):
        progress.frequencies(6)


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
            "start_told": (("seed", "pair", "answer"), 0 * wave),
            "start_logits": (("seed", "pair", "answer"), wave[:, ::-1]),
            "renamed_told": (("seed", "pair", "answer"), 0.1 * wave),
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
    for judge in (claims.judge_progress, claims.judge_order, claims.judge_trig):
        assert passes(judge, ds)
        assert not passes(judge, claims.untrained(ds))
    assert not passes(claims.judge_progress, claims.renamed(ds))
    assert not passes(claims.judge_trig, claims.renamed(ds))
    assert not passes(claims.judge_order, ds.assign(restricted_loss=ds.test_loss))
    assert not passes(claims.judge_order, ds.assign(test_loss=ds.test_loss * 0 + 5))
    assert not passes(claims.judge_progress, ds.assign(predicted_chance=3 * ds.predicted_chance))
    assert not passes(claims.judge_trig, ds.assign(predicted_logits=1.6 * ds.predicted_logits))


def test_times_are_those_that_last():
    ds = grokked()
    assert claims.times(ds)["test"].values.tolist() == [60, 60, 60]
    bounced = ds.test_loss.copy()
    bounced[0, 8] = 9.0
    assert claims.times(ds.assign(test_loss=bounced))["test"].values.tolist() == [90, 60, 60]
    assert claims.since(ds.test_loss < 0).values.tolist() == [np.inf] * 3


def test_figures_can_be_drawn():
    from jaxdyn.plotting import render

    for plot in (claims.plot_losses, claims.plot_trig):
        assert render(plot, grokked()).startswith("<svg")
