"""Sizes of caches to the byte, positions within them, and that no buffer grows with the text."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.nn import Transformer, attention
from jaxdyn.nn.cache import Policy, attend, bytes_held, losses, start
from jaxdyn.nn.cache.state import placed, stays
from tests.nn.cache.helpers import SMALL, params_of, text


def first_of(shape, policy):
    """The first layer's empty cache."""
    return jax.jit(lambda: jax.tree.map(lambda x: x[0], start(shape, policy).layers))()


@pytest.mark.parametrize(("dtype", "item"), [("float32", 4), ("bfloat16", 2)])
def test_bytes(dtype, item):
    shape = Transformer(vocabulary=5, width=64, layers=3, heads=8, groups=2, hidden=8, dtype=dtype)
    held = bytes_held(shape, Policy(kind="streaming", size=10, sinks=2))
    assert held.keys_values == 2 * 3 * 2 * 8 * 10 * item
    assert held.books == 3 * 2 * 10 * (4 + 4 + 4)
    state = start(shape, Policy(kind="window", size=10))
    assert state.layers.key.nbytes + state.layers.value.nbytes == held.keys_values


def test_blocks_that_are_used_twice_keep_twice_the_keys():
    once, policy = dataclasses.replace(SMALL, dtype="float32"), Policy(kind="streaming", size=10, sinks=2)
    for order in ("immediate", "all"):
        shape = dataclasses.replace(once, repeats=2, order=order)
        assert bytes_held(shape, policy) == tuple(2 * x for x in bytes_held(once, policy))


def test_one_plan_serves_all_heads_of_policies_that_do_not_look_at_attention():
    shape = dataclasses.replace(SMALL, dtype="float32")
    for kind, rows in (("streaming", 1), ("dense", 1), ("h2o", 2)):
        policy = Policy(kind=kind, size=6)
        placement = jax.jit(lambda layer, t, p=policy: placed(shape, p, layer, t))(first_of(shape, policy), np.int32(2))
        assert placement.place.tolist() == [2] * rows and placement.born[0].tolist() == [-1, -1, 2, -1, -1, -1]


@pytest.mark.parametrize(("kind", "positions"), [("dense", "cache"), ("window", "absolute"), ("window", "cache")])
def test_keys_whose_positions_never_change_are_kept_turned(kind, positions):
    shape, policy = dataclasses.replace(SMALL, layers=1, dtype="float32"), Policy(kind=kind, size=6, positions=positions)
    q, k = np.ones((4, 4), np.float32), np.arange(8, dtype=np.float32).reshape(2, 4)
    go = jax.jit(lambda layer, t: attend(shape, policy, layer, t, q, k, k)[1])
    layer = jax.device_get(go(first_of(shape, policy), np.int32(3)))
    assert stays(policy) == (positions == "absolute" or kind == "dense")
    turned = jax.jit(lambda k: attention.rotate(k, positions=jnp.full(1, 3)))
    kept = np.asarray(turned(k[None])) if stays(policy) else k
    np.testing.assert_allclose(layer.key[:, 3], kept.reshape(2, 4), rtol=1e-6)


def test_positions_number_the_kept_keys_and_the_output_is_theirs(x64):
    shape = dataclasses.replace(SMALL, layers=1, position="none")
    policy = Policy(kind="h2o", size=4, recent=2)
    rng, layer = np.random.default_rng(0), first_of(shape, policy)
    go = jax.jit(lambda layer, t, q, k, v: attend(shape, policy, layer, t, q, k, v))
    values = []
    for t in range(9):
        q, k, v = rng.normal(size=(4, 4)), rng.normal(size=(2, 4)), rng.normal(size=(2, 4))
        values.append(v)
        out, layer = go(layer, jnp.asarray(t), q, 2 * k, v)
        born, place = np.asarray(layer.born), np.asarray(layer.position)
        for g in range(2):
            there = born[g] >= 0
            kept = np.sort(born[g][there])
            assert there.sum() == min(t + 1, 4) and len(set(kept)) == there.sum() and {t, max(t - 1, 0)} <= set(kept)
            np.testing.assert_array_equal(place[g][there], np.searchsorted(kept, born[g][there]))
            s = np.array([q[2 * g : 2 * g + 2] @ np.asarray(layer.key)[g][there].T / 2])[0]
            b = np.exp(s) / np.exp(s).sum(1, keepdims=True)
            kept_values = np.stack([values[i][g] for i in born[g][there]])
            np.testing.assert_allclose(out[2 * g : 2 * g + 2], b @ kept_values, rtol=1e-12, atol=1e-14)


def temporary(kind, count):
    shape = dataclasses.replace(SMALL, dtype="float32")
    policy = Policy(kind=kind, size=8 if kind != "dense" else count, recent=2, sinks=2)
    params = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), params_of(shape))
    run = jax.jit(lambda p, t: losses(shape, p, policy, t)[1])
    return run.lower(params, jax.ShapeDtypeStruct((count + 1,), jnp.int32)).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.slow
def test_buffers_do_not_grow_with_the_text():
    short, long = (temporary("h2o", n) for n in (64, 4096))
    assert long - short <= 4096 * 4 * 3  # tokens and losses, of 4 bytes each, may be copied; nothing else
    cache = 2 * 2 * 2 * 4 * 4  # bytes of keys and values for one token
    assert temporary("dense", 4096) - temporary("dense", 64) > (4096 - 64) * cache


@pytest.mark.slow
def test_many_streams_have_a_cache_each():
    shape = dataclasses.replace(SMALL, dtype="float32")
    params, policy = params_of(shape), Policy(kind="h2o", size=5, recent=2)
    texts = np.stack([text(13, seed) for seed in range(3)])
    run = lambda t: losses(shape, params, policy, t)  # noqa: E731
    state, nats = jax.jit(jax.vmap(run))(texts)
    assert nats.shape == (3, 12) and state.layers.key.shape == (3, 2, 2, 5, 4)
    alone, expected = jax.jit(run)(texts[1])
    np.testing.assert_allclose(nats[1], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(state.layers.born[1], alone.layers.born)
    assert not np.array_equal(state.layers.born[0], state.layers.born[1])  # every stream keeps what it looked at
