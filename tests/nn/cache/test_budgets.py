"""All policies in one program against the caches of fixed size, token by token."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.nn import Transformer, cache, network
from jaxdyn.nn.cache import budgets
from tests.nn.drawn import weights

SHAPE = Transformer(vocabulary=9, width=8, layers=2, heads=4, groups=2, hidden=8, std=0.5)  # two heads share each head of keys
OTHERS = {
    "as many heads of keys": {"groups": None},
    "a parallel block with LayerNorm": {"norm": "layer", "mlp": "plain", "activation": "gelu", "parallel": True, "rotary": None},
    "a window": {"window": 5},
    "alibi": {"position": "alibi"},
    "learned positions": {"position": "learned", "length": 32},
    "blocks used twice": {"repeats": 2},
}
LENGTH = 20
CACHES = {
    "full": {"kind": "dense"},
    "recent": {"kind": "window"},
    "streaming": {"kind": "streaming"},
    "sum": {"kind": "h2o"},
    "mean": {"kind": "h2o", "score": "mean"},
    "decay": {"kind": "h2o", "score": "decay", "decay": 0.9},
    "anti": {"kind": "anti_h2o"},
    "oracle": {"kind": "oracle_global"},
}


@pytest.fixture(scope="module")
def world():
    params = network(SHAPE).init(jax.random.key(0))
    tokens = jax.random.randint(jax.random.key(1), (LENGTH + 1,), 0, 9)
    given = cache.global_scores(SHAPE, params, tokens[:-1])
    every = budgets.policies((0.2, 0.4), LENGTH)
    run = jax.jit(jax.vmap(jax.vmap(lambda policy: budgets.decode(SHAPE, params, policy, tokens[:-1], given, jax.random.key(2)))))
    return params, tokens, given, every, run(every)


@pytest.mark.thinned
@pytest.mark.parametrize("name", sorted(CACHES))
def test_the_same_losses_as_a_cache_of_fixed_size(world, name):
    params, tokens, given, every, (logits, _) = world
    i = budgets.POLICIES.index(name)
    for j in range(2):
        size, recent, sinks = (int(x[i, j]) for x in (every.size, every.recent, every.sinks))
        policy = cache.Policy(
            size=size, positions="absolute", recent=recent, sinks=sinks if name == "streaming" else 0, **CACHES[name]
        )
        extra = {"given": given} if name == "oracle" else {}
        loss = cache.losses(SHAPE, params, policy, tokens, **extra)[1]
        ours = -jnp.take_along_axis(jax.nn.log_softmax(logits[i, j]), tokens[1:, None], -1)[:, 0]
        np.testing.assert_allclose(ours, loss, rtol=2e-4, atol=2e-5)  # float32, two layers


def test_what_is_kept(world):
    _, _, _, every, (logits, seen) = world
    kept = np.asarray(seen.kept).sum(-1)
    query = np.arange(1, LENGTH + 1)
    for i in range(len(budgets.POLICIES)):
        for j in range(2):
            expected = np.minimum(query, int(every.size[i, j]))
            np.testing.assert_array_equal(kept[i, j], np.broadcast_to(expected, kept[i, j].shape))
    at = np.arange(LENGTH)
    random = budgets.POLICIES.index("random")
    recent = (at[:, None] - at < int(every.recent[random, 1])) & (at <= at[:, None])
    assert np.all(np.asarray(seen.kept)[random, 1][..., recent])
    assert bool(jnp.all(jnp.isfinite(logits)))


def test_the_error_is_within_its_bound(world):
    seen = world[-1][1]
    assert float(jnp.max(seen.error - seen.bound)) < 1e-5
    np.testing.assert_allclose(seen.lost[budgets.POLICIES.index("full")], 0, atol=1e-6)
    assert float(jnp.max(seen.lost)) > 0.5


def test_received_attention():
    b = jnp.tri(3) / jnp.arange(1, 4)[:, None]
    np.testing.assert_allclose(budgets.received(b), [1 + 1 / 2 + 1 / 3, 1 / 2 + 1 / 3, 1 / 3], rtol=1e-6)


@pytest.mark.thinned
@pytest.mark.parametrize("name", OTHERS)
def test_other_decoders(name):
    shape = dataclasses.replace(SHAPE, **OTHERS[name])
    params, tokens = weights(shape), jnp.arange(LENGTH + 1) ** 2 % 9
    given = jnp.zeros((shape.depth, shape.key_heads, LENGTH))
    traced = jax.tree.map(lambda x: x[budgets.POLICIES.index("sum"), 0], budgets.policies((0.4,), LENGTH))
    policy = cache.Policy(kind="h2o", size=int(traced.size), recent=int(traced.recent), positions="absolute")
    logits, _ = jax.jit(lambda p: budgets.decode(shape, p, traced, tokens[:-1], given, jax.random.key(0)))(params)
    _, expected = jax.jit(lambda p: cache.decode(shape, p, policy, tokens[:-1]))(params)
    np.testing.assert_allclose(logits, expected, rtol=2e-4, atol=2e-5)


def test_other_attention_is_refused(world):
    params, tokens, given, every, _ = world
    shape = dataclasses.replace(SHAPE, attention="sigmoid")
    with pytest.raises(UsageError, match="softmax attention"):
        budgets.decode(shape, params, jax.tree.map(lambda x: x[0, 0], every), tokens, given, jax.random.key(0))
