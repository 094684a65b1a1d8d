"""Decoding against Python lists for caches: every policy, kind of attention and kind of positions."""

import dataclasses

import jax
import numpy as np
import pytest
import scipy

from jaxdyn.errors import UsageError
from jaxdyn.nn.cache import Policy, decode, global_scores, losses, step
from tests.nn.cache.helpers import SMALL, apply, params_of, text
from tests.nn.cache.plain_cache import decoded

CASES = {
    "streaming": ({}, {"kind": "streaming", "size": 7, "sinks": 3}),
    "absolute positions, sinks of the softmax": (
        {"attention": "sink_bias", "groups": 1},
        {"kind": "streaming", "size": 6, "sinks": 2, "positions": "absolute"},
    ),
    "window, distances": ({"position": "alibi", "groups": None}, {"kind": "window", "size": 5}),
    "streaming, distances": ({"position": "alibi"}, {"kind": "streaming", "size": 6, "sinks": 2}),
    "streaming, learned positions": ({"position": "learned", "length": 6}, {"kind": "streaming", "size": 6, "sinks": 2}),
    "sums": ({}, {"kind": "h2o", "size": 6, "recent": 3}),
    "means": ({"position": "none"}, {"kind": "h2o", "size": 6, "recent": 2, "score": "mean"}),
    "decay": ({"attention": "zero_sink"}, {"kind": "h2o", "size": 5, "recent": 2, "score": "decay", "decay": 0.6}),
    "anti": ({"attention": "sigmoid"}, {"kind": "anti_h2o", "size": 6, "recent": 3}),
    "a sink token that is kept": ({"sink_token": True}, {"kind": "streaming", "size": 6, "sinks": 1}),
    "a sink token that leaves": ({"sink_token": True, "position": "learned", "length": 6}, {"kind": "window", "size": 6}),
    "a sink token, global": ({"sink_token": True}, {"kind": "oracle_global", "size": 6, "recent": 3}),
    "blocks used twice": ({"repeats": 2}, {"kind": "streaming", "size": 6, "sinks": 2}),
    "all blocks used again": ({"repeats": 2, "order": "all"}, {"kind": "h2o", "size": 6, "recent": 3}),
    "global": ({"tied": True}, {"kind": "oracle_global", "size": 6, "recent": 3}),
}
scores = jax.jit(global_scores, static_argnums=0)  # one program: by itself every operation would be compiled


@pytest.mark.parametrize("name", CASES)
def test_against_lists(name, x64):
    change, fields = CASES[name]
    shape, policy = dataclasses.replace(SMALL, **change), Policy(**fields)
    params, tokens = params_of(shape), text()
    given = scores(shape, params, tokens) if policy.kind == "oracle_global" else None
    state, logits = jax.jit(lambda p, t: decode(shape, p, policy, t, given=given))(params, tokens)
    expected, kept = decoded(shape, jax.tree.map(np.asarray, params), np.asarray(tokens), policy, given)
    np.testing.assert_allclose(logits, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(np.sort(state.layers.born, -1), kept)
    assert int(state.time) == len(tokens) + shape.sink_token


@pytest.mark.parametrize(
    "name", ["streaming", "absolute positions, sinks of the softmax", "sums", "all blocks used again", "global"]
)
def test_layers_written_out_give_the_same(name, x64):
    change, fields = CASES[name]
    shape, policy = dataclasses.replace(SMALL, **change), Policy(**fields)
    plain, params, tokens = dataclasses.replace(shape, scan=False), params_of(shape), text()
    given = scores(shape, params, tokens) if policy.kind == "oracle_global" else None
    (a, one), (b, other) = (jax.jit(lambda p, t, s=s: decode(s, p, policy, t, given=given))(params, tokens) for s in (shape, plain))
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12), a, b)
    after = lambda s, state: jax.jit(lambda x: step(s, params, policy, x, tokens[3], given=given))(state)  # noqa: E731
    (c, next_), (d, same) = after(plain, a), after(shape, b)
    np.testing.assert_allclose(next_, same, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(c.layers.born, d.layers.born)


@pytest.mark.parametrize(
    ("kind", "scan"),
    [
        ("streaming", True),
        ("h2o", True),
        ("dense", True),
        ("h2o", False),
        pytest.param("streaming", False, marks=pytest.mark.slow),
        pytest.param("dense", False, marks=pytest.mark.slow),
    ],
)
def test_a_text_in_two_parts(kind, scan, x64):
    shape, tokens = dataclasses.replace(SMALL, scan=scan), text()
    params, policy = params_of(shape), Policy(kind=kind, size=20 if kind == "dense" else 6, recent=2)
    run = jax.jit(lambda t, state: decode(shape, params, policy, t, state=state))
    whole, (state, first) = run(tokens, None), run(tokens[:9], None)
    end, second = run(tokens[9:], state)
    np.testing.assert_allclose(np.concatenate([first, second]), whole[1], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(end.layers.born, whole[0].layers.born)


@pytest.mark.parametrize(("kind", "token"), [("dense", False), ("random", False), ("dense", True)])
def test_with_room_for_all_tokens_it_is_the_network(kind, token, x64):
    shape = dataclasses.replace(SMALL, sink_token=token)
    params, tokens = params_of(shape), text(9)
    policy = Policy(kind=kind, size=9 + token)
    _, logits = jax.jit(lambda p, t: decode(shape, p, policy, t, key=jax.random.key(0)))(params, tokens)
    whole = np.asarray(apply(shape, params, tokens[None]))[0]
    np.testing.assert_allclose(logits, whole, rtol=1e-10, atol=1e-10)
    nats = jax.jit(lambda t: losses(shape, params, policy, t, key=jax.random.key(0))[1])(tokens)
    expected = scipy.special.logsumexp(whole[:-1], -1) - whole[np.arange(8), tokens[1:]]
    np.testing.assert_allclose(nats, expected, rtol=1e-10)


def test_random_streams_differ_by_their_keys(x64):
    params, tokens, policy = params_of(SMALL), text(), Policy(kind="random", size=6, recent=2)
    run = jax.jit(lambda key: decode(SMALL, params, policy, tokens, key=key)[0].layers.born)
    a, b, c = (np.sort(run(jax.random.key(i)), -1) for i in (0, 1, 0))
    np.testing.assert_array_equal(a, c)
    assert not np.array_equal(a, b) and not np.array_equal(a[0], a[1]) and not np.array_equal(a[:, 0], a[:, 1])
    assert np.all(a[..., -2:] == [18, 19])


def test_what_does_not_fit_is_refused(x64):
    with pytest.raises(UsageError, match="a dense cache has a place for each of 20 tokens"):
        decode(SMALL, params_of(SMALL), Policy(kind="dense", size=19), text())
    shape = dataclasses.replace(SMALL, position="learned", length=8)
    with pytest.raises(UsageError, match="learned 8 positions"):
        decode(shape, params_of(shape), Policy(kind="window", size=4, positions="absolute"), text())
