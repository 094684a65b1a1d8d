"""Loss, batches and optimizer against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import nn
from jaxdyn.theories.rev.mlt import model, trial
from jaxdyn.theories.rev.mlt.trial import Deep
from tests.theories.rev.helpers import TINY, inside


@pytest.mark.parametrize(("whole", "counted"), [(False, [2]), (True, [0, 1, 2])])
def test_loss_is_the_cross_entropy_of_what_is_present(whole, counted):
    logits = np.random.default_rng(0).normal(size=(5, 3, 18)).astype(np.float32)
    net = nn.Network(None, None, lambda params, tokens, key=None: params, None)
    sequences = np.random.default_rng(1).integers(0, 18, (5, 4))
    present = np.array([True, True, False, True, False])
    batch = model.Batch(jnp.asarray(sequences, jnp.int32), jnp.asarray(present), jax.random.key(0))
    chance = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    each = -np.log(np.take_along_axis(chance, sequences[:, 1:, None], 2)[..., 0])
    loss = model.objective(net, jnp.asarray(logits), batch, word=1, whole=whole, dropout=False)
    np.testing.assert_allclose(loss, each[present][:, counted].mean(), rtol=1e-5)
    np.testing.assert_allclose(model.word_loss(net, jnp.asarray(logits), batch.sequences, 2), each[:, 1:].sum(1), rtol=1e-5)


@pytest.mark.parametrize(("validation", "share"), [("unseen", 1.0), ("trained", 1.0), ("unseen", 0.5)])
def test_an_epoch_shows_every_training_sequence_once(validation, share):
    s = inside(Deep(**TINY, task="cot", shown=share, validation=validation))
    size, shown = trial.sizes(s), trial.shown_mask(s)
    sequences = jnp.arange(size.train + size.validation, dtype=jnp.int32)[:, None]
    largest = model.batch_size(len(sequences), s.batch)
    batch, count = model.make_batch(sequences, shown, largest, jax.random.key(3))
    orders = []
    for epoch in range(2):
        batches = [batch(jnp.int32(epoch * int(count) + i)) for i in range(int(count))]
        orders.append(np.concatenate([np.asarray(b.sequences)[np.asarray(b.present), 0] for b in batches]))
        assert max(b.sequences.shape[0] for b in batches) <= s.batch
        assert sorted(orders[-1]) == np.flatnonzero(shown).tolist()
    assert orders[0].tolist() != orders[1].tolist()
    trained_on = 3 * round(share * size.train_facts) + 2 * size.validation_facts
    assert len(orders[0]) == trained_on + (validation == "trained") * size.validation


@pytest.mark.parametrize("embeddings", ["trained", "frozen"])
def test_adamw_moves_all_but_frozen_embeddings(embeddings):
    w = {name: jnp.array([2.0, -1.0]) for name in ("embed", "position", "norm")}
    g = jax.tree.map(lambda x: 0.5 * jnp.ones_like(x), w)
    lr, decay = 0.01, 0.1
    tx = model.optimizer(lr, decay, embeddings == "frozen")
    update, _ = tx.update(g, tx.init(w), w)
    for name, x in update.items():
        moved = np.zeros(2) if embeddings == "frozen" and name != "norm" else -lr * (1 + decay * np.array([2.0, -1.0]))
        np.testing.assert_allclose(x, moved, rtol=1e-5)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_dropout_is_a_function_of_the_step_and_off_at_zero(dropout):
    def apply(logits, tokens, key=None):
        return logits if key is None else logits + jax.random.normal(key, logits.shape, logits.dtype)

    sequences, size = jnp.ones((14, 3), jnp.int32), model.batch_size(14, 4)
    batch, _ = model.make_batch(sequences, jnp.ones(14, bool), size, jax.random.key(2))
    net, logits = nn.Network(None, None, apply, None), jnp.zeros((size, 2, 4), jnp.float32)

    def loss(step):
        return model.objective(net, logits, batch(jnp.int32(step)), word=1, whole=False, dropout=dropout > 0)

    one, two, three = (float(loss(i)) for i in (0, 0, 1))
    assert one == two and (one == three) == (dropout == 0)


def test_read_out_alone_is_symmetric_except_for_the_norm(x64):
    s = inside(Deep(**TINY, readout="alone"))
    net = trial.network(s)
    params = jax.jit(lambda key: model.read_out_alone(net.init(key), s.readout == "alone"))(jax.random.key(0))
    tokens = jnp.array([[17, 3], [16, 3], [2, 3]], jnp.int32)
    logits = np.asarray(jax.jit(net.apply)(params, tokens))[:, 1]
    np.testing.assert_allclose(logits, logits[[0, 0, 0]], rtol=1e-6)  # the token before does not matter
    e = np.asarray(params["embed"])
    x = e[3] - e[3].mean()
    x = x / np.sqrt((x**2).mean() + net.shape.epsilon)
    np.testing.assert_allclose(logits[0], (x * np.tile([1, -1], 4)) @ e.T, rtol=2e-4, atol=1e-6)
    tx = model.optimizer(0.1, 0.0, False, s.readout == "alone")
    ones = jax.tree.map(np.ones_like, jax.device_get(params))
    updates, _ = jax.jit(tx.update)(ones, jax.jit(tx.init)(params), params)
    moved = {name: any(np.any(x) for x in jax.tree.leaves(jax.device_get(u))) for name, u in updates.items()}
    assert moved == {name: name == "embed" for name in params}


def test_order_of_a_question():
    sequences = jnp.array([[1, 2, 90, 3, 4]])
    np.testing.assert_array_equal(model.ordered(sequences, 2, True), [[90, 1, 2, 3, 4]])
    np.testing.assert_array_equal(model.ordered(sequences, 2, False), sequences)
