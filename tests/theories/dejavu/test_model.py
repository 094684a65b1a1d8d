"""The decoder that runs in parts: whole, in parts by hand, and causal."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.dejavu import model

WIDTH, HIDDEN, HEADS, LAYERS, LENGTH = 8, 12, 4, 2, 6


@pytest.fixture(scope="module")
def world():
    params = model.init(jax.random.key(0), 9, LENGTH, LAYERS, WIDTH, HIDDEN)
    tokens = jax.random.randint(jax.random.key(1), (LENGTH,), 0, 9)
    keys = jax.random.split(jax.random.key(2), 6)
    shapes = ((HIDDEN,), (HIDDEN,), (HEADS,), (2, WIDTH, 2), (2, 2, HIDDEN), (2, HIDDEN))
    signs = model.Signs(*(jax.random.normal(k, (LAYERS, *size)) for k, size in zip(keys, shapes, strict=True)))
    logits, seen = model.forward(params, tokens, HEADS)

    @jax.jit
    def run(mode, units, heads):
        return model.forward(params, tokens, HEADS, (model.Part(mode, units, heads), signs, jax.random.key(3)))

    return params, tokens, logits, seen, signs, run


@pytest.mark.slow
@pytest.mark.parametrize("mode", range(len(model.MODES)))
def test_everything_runs_is_the_whole(world, mode):
    logits, run = world[2], world[-1]
    np.testing.assert_allclose(run(mode, HIDDEN, HEADS)[0], logits, rtol=1e-5, atol=1e-5)
    assert not np.allclose(run(mode, 2, HEADS)[0], logits, atol=1e-3)


@pytest.mark.slow
def test_units_that_are_off_can_be_left_out(world):
    seen, run = world[3], world[-1]
    active = int(jnp.max(jnp.sum(seen.units > 0, -1)))
    assert active < HIDDEN
    np.testing.assert_allclose(run(0, active, HEADS)[0], world[2], rtol=1e-5, atol=1e-5)


def test_own_units_of_the_first_layer_by_hand(world):
    params, _, _, whole, _, run = world
    seen = run(0, 3, HEADS)[1]
    driven = np.asarray(whole.inputs[0] @ params.layers.inner[0] + params.layers.shift[0])
    largest = np.argsort(-driven, -1)[:, :3]
    used = np.zeros_like(driven)
    np.put_along_axis(used, largest, np.maximum(np.take_along_axis(driven, largest, -1), 0), -1)
    np.testing.assert_allclose(seen.changes[0, 1], used @ np.asarray(params.layers.outer[0]), rtol=1e-4, atol=1e-5)


def test_foreseen_units_of_the_first_layer_by_hand(world):
    params, _, _, whole, signs, run = world
    for mode, source, stream in (("same", 0, whole.inputs[0]), ("previous", 1, whole.before[0])):
        scores = np.asarray(stream @ signs.low[0, source] @ signs.high[0, source] + signs.bias[0, source])
        used = np.where(np.asarray(model.top(scores, 3)), whole.units[0], 0)
        seen = run(model.MODES.index(mode), 3, HEADS)[1]
        np.testing.assert_allclose(seen.changes[0, 1], used @ np.asarray(params.layers.outer[0]), rtol=1e-4, atol=1e-5)


def test_heads_by_their_norms(world):
    whole, run = world[3], world[-1]
    seen = run(0, HIDDEN, 1)[1]
    np.testing.assert_allclose(jnp.linalg.norm(seen.changes[0, 0], axis=-1), jnp.max(whole.norms[0], -1), rtol=1e-4)
    other = run(model.MODES.index("other"), HIDDEN, 1)[1]
    chosen = np.argmax(np.roll(whole.norms[0], LENGTH // 2, 0), -1)
    expected = np.take_along_axis(np.asarray(whole.norms[0]), chosen[:, None], -1)[:, 0]
    np.testing.assert_allclose(jnp.linalg.norm(other.changes[0, 0], axis=-1), expected, rtol=1e-4)


def test_streams_add_up_and_are_causal(world):
    params, tokens, logits, seen, _, _ = world
    np.testing.assert_allclose(seen.streams[:, 0] + seen.changes[:, 0], seen.streams[:, 1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(seen.streams[0, 1] + seen.changes[0, 1], seen.streams[1, 0], rtol=1e-5, atol=1e-6)
    later = model.forward(params, tokens.at[-1].set((tokens[-1] + 1) % 9), HEADS)[0]
    np.testing.assert_allclose(later[:-1], logits[:-1], atol=1e-6)


def test_top_breaks_ties():
    scores = jnp.asarray([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(model.top(scores, 3), [[1, 1, 0, 1], [1, 1, 1, 0]])
    np.testing.assert_array_equal(model.top(scores, 4), np.ones((2, 4)))
    counts = jnp.asarray([1, 4])
    np.testing.assert_array_equal(jax.vmap(model.top)(scores, counts), [[0, 1, 0, 0], [1, 1, 1, 1]])
