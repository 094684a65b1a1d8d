"""Training of Table 1: the reduced network against the whole one, weighted against plain batches, precision, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.experiments.table1 import data, model
from jaxdyn.theories.joma.experiments.table1 import trial as training
from jaxdyn.theories.joma.experiments.table1.claims import gain
from jaxdyn.theories.joma.experiments.table1.trial import Table1

TINY = Table1(classes=6, members=2, latents=(5, 6), width=8, batch=16, samples=1, every=1.0, dtype="float64")


@pytest.fixture(scope="module")
def run():
    """A problem, weights that are no start any more, and the whole network."""

    @jax.jit
    def draw(key):
        leaves, tree = jax.tree.flatten(training.start(TINY, key))
        keys = jax.random.split(key, len(leaves))
        noisy = [x + 0.1 * jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=True)]
        return training.problem(TINY, key), jax.tree.unflatten(tree, noisy)

    with jax.enable_x64(True):
        return *draw(jax.random.key(1)), training.network(TINY)


def test_reduced_network_is_the_whole_one(run, x64):
    p, params, net = run
    logits, seen = jax.jit(lambda w: net.apply(w, p.tokens, observe=("hidden",)))(params)
    apply = jax.jit(model.apply, static_argnums=2)
    found, nodes = apply(params, p.tokens, training.positions(TINY))
    np.testing.assert_allclose(found, logits[:, -1], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(nodes, jnp.max(seen["hidden"], 2)[:2], rtol=1e-11, atol=1e-12)
    everything, _ = apply(params, p.tokens, data.LENGTH)
    np.testing.assert_allclose(everything, logits[:, -1], rtol=1e-11, atol=1e-12)


def test_weighted_gradient_is_that_of_the_batch(run, x64):
    p, params, net = run
    labels = jax.random.randint(jax.random.key(5), (128,), 0, TINY.classes, jnp.int32)
    counts = jnp.bincount(labels, length=TINY.classes)
    plain = jax.jit(jax.grad(lambda w: training.plain_loss(w, labels, p.tokens, net)))(params)
    weighted = jax.jit(jax.grad(lambda w: training.weighted_loss(w, counts, p.tokens, training.positions(TINY))))(params)
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(weighted), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)


def test_counts_are_those_of_the_labels():
    key = jax.random.key(6)
    labels = np.asarray(jax.random.randint(key, (1280,), 0, 7, jnp.int32))
    np.testing.assert_array_equal(training.sample_counts(key, 1280, 7), np.bincount(labels, minlength=7))


def test_decay_is_coupled(x64):
    tx = training.optimizer(0.1, 0.5)
    w, g = jnp.asarray([2.0, -3.0]), jnp.asarray([0.1, 0.2])
    updates, _ = tx.update(g, tx.init(w), w)
    np.testing.assert_allclose(updates, -0.1 * np.sign(g + 0.5 * w), rtol=1e-6)  # the first step of Adam is a sign


@pytest.mark.slow
def test_training_learns_the_classes_and_at_rate_zero_nothing():
    grid = jd.grid(Table1, classes=6, latents=(5, 6), width=16, samples=1, every=60.0, lr=[0.0, 3e-3])
    ds = jd.sweep(training.trial, grid, seeds=2)
    for name in ("score", "permuted", "loss"):
        moved = gain(ds, name)
        assert (moved.sel(lr=0.0) == 0).all() and (moved.sel(lr=3e-3) != 0).any()
    assert (ds.loss.isel(record=1) < 0.5 * ds.loss.isel(record=0)).sel(lr=3e-3).all()
    np.testing.assert_array_equal(ds.predicted_score.sel(lr=0.0, form="untrained"), ds.measured_score.sel(lr=0.0))
    np.testing.assert_array_equal(ds.measured_score, ds.score.isel(record=-1))
    np.testing.assert_array_equal(ds.step, np.broadcast_to([0, 60], ds.step.shape))


def test_single_precision_stays():
    s = Table1(classes=6, latents=(5, 6), width=8)
    with jax.enable_x64(True):
        state, curves = jax.eval_shape(lambda k: training.trained(s, k), jax.random.key(0))
    assert {x.dtype for x in jax.tree.leaves((state.params, curves))} == {jnp.dtype("float32")}


@pytest.mark.parametrize(
    "fields",
    [
        {"every": 1.5},
        {"members": 4},  # up to 64 tokens
        {"members": 0},
        {"latents": (2, 2), "members": 3},
        {"latents": (3, 5)},  # 3 pairs out of 3 lower latents
        {"latents": (4, 4), "classes": 7},  # 6 pairs out of 4 upper latents
        {"latents": (5000, 20)},
    ],
)
def test_settings_that_cannot_be_are_refused(fields):
    with pytest.raises(jd.UsageError):
        Table1(**fields)
