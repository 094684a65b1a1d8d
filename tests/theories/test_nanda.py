"""Progress measures: the transformer, its measures and one epoch against plain NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import jaxdyn as jd
from jaxdyn.theories.nanda import model, training
from jaxdyn.theories.nanda.dynamics import progress
from jaxdyn.theories.nanda.training import Training

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
    run = jax.jit(training.train, static_argnums=0)(s, jax.random.key(6))
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
