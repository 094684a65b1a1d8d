"""Whole texts at once against decoding; where a window equals recomputation, and where not."""

import dataclasses

import jax
import numpy as np
import pytest
from jax.experimental import checkify

from jaxdyn.errors import UsageError
from jaxdyn.nn.cache import Policy, decode, global_scores, losses, prefill, recompute, start, step
from tests.nn.cache.helpers import SMALL, apply, params_of, text
from tests.nn.families import FAMILIES

CASES = {
    "rotary": ({}, {"kind": "streaming", "sinks": 2}),
    "absolute": ({}, {"kind": "streaming", "sinks": 2, "positions": "absolute"}),
    "distances": ({"position": "alibi", "attention": "sink_bias"}, {"kind": "streaming", "sinks": 3}),
    "a sink token": ({"sink_token": True}, {"kind": "streaming", "sinks": 1}),
    "a sink token that leaves": ({"sink_token": True}, {"kind": "window"}),
    "blocks used twice": ({"repeats": 2}, {"kind": "streaming", "sinks": 2}),
    "learned": ({"position": "learned", "length": 7, "attention": "relu"}, {"kind": "window"}),
    "a window": ({"window": 6}, {"kind": "streaming", "sinks": 2}),
    "a window, absolute": ({"window": 7}, {"kind": "streaming", "sinks": 2, "positions": "absolute"}),
    "neox": (FAMILIES["neox"], {"kind": "streaming", "sinks": 2}),
}


@pytest.mark.thinned
@pytest.mark.parametrize("name", CASES)
def test_pairwise_offsets_equal_the_scan(name):
    change, fields = CASES[name]
    shape = dataclasses.replace(SMALL, dtype="float32", **change)
    params, policy = params_of(shape), Policy(size=7, **fields)
    batch = np.stack([text(24, 1), text(24, 2)])
    fast = jax.jit(lambda p, t: prefill(shape, p, policy, t))(params, batch)
    slow = jax.jit(jax.vmap(lambda t: decode(shape, params, policy, t)[1]))(batch)
    np.testing.assert_allclose(fast, slow, rtol=1e-4, atol=1e-5 * np.max(np.abs(slow)))
    if shape.position != "learned":  # the whole text has more positions than were learned
        assert np.max(np.abs(np.asarray(fast) - apply(shape, params, batch))) > 0.1


def test_positions_in_the_cache_matter_with_sinks_only(x64):
    params, tokens = params_of(SMALL), text(24)

    def logits(sinks, positions):
        policy = Policy(kind="streaming", size=7, sinks=sinks, positions=positions)
        return jax.jit(lambda t: prefill(SMALL, params, policy, t))(tokens)

    np.testing.assert_allclose(logits(0, "cache"), logits(0, "absolute"), rtol=1e-10, atol=1e-10)
    assert np.max(np.abs(np.asarray(logits(3, "cache")) - logits(3, "absolute"))) > 1e-2


@pytest.mark.thinned
@pytest.mark.parametrize("layers", [1, 2])
def test_a_window_is_its_recomputation_in_one_layer_only(layers, x64):
    shape = dataclasses.replace(SMALL, layers=layers)
    params, tokens = params_of(shape), text(16)
    window = jax.jit(lambda t: decode(shape, params, Policy(kind="window", size=5), t)[1])(tokens)
    again = jax.jit(lambda t: recompute(shape, params, 5, t))(tokens)
    expected = np.stack([np.asarray(apply(shape, params, tokens[None, max(0, i - 4) : i + 1]))[0, -1] for i in (2, 4, 5, 15)])
    np.testing.assert_allclose(np.asarray(again)[[2, 4, 5, 15]], expected, rtol=1e-10, atol=1e-10)
    error = np.max(np.abs(np.asarray(window) - again))
    assert error < 1e-9 if layers == 1 else error > 0.1


def test_recomputed_windows_begin_with_the_sink_token(x64):
    shape = dataclasses.replace(SMALL, sink_token=True)
    params, tokens = params_of(shape), text(12)
    again = jax.jit(lambda t: recompute(shape, params, 5, t))(tokens)
    expected = np.stack([np.asarray(apply(shape, params, tokens[None, max(0, i - 3) : i + 1]))[0, -1] for i in (1, 3, 4, 11)])
    np.testing.assert_allclose(np.asarray(again)[[1, 3, 4, 11]], expected, rtol=1e-10, atol=1e-10)


def test_global_scores_are_column_sums_over_all_queries(x64):
    params, tokens = params_of(SMALL), text(8)
    given = np.asarray(jax.jit(lambda p: global_scores(SMALL, p, tokens))(params))
    _, seen = apply(SMALL, params, tokens[None], observe=("attention",))
    a = np.asarray(seen["attention"])[:, 0]
    np.testing.assert_allclose(given[1, 0], a[1, 0].sum(0) + a[1, 1].sum(0), rtol=1e-12)
    np.testing.assert_allclose(np.sum(given, -1), 16)  # 8 queries of 2 heads


def test_policies_that_look_at_attention_are_refused(x64):
    with pytest.raises(UsageError, match="kind='h2o' is not allowed"):
        prefill(SMALL, params_of(SMALL), Policy(kind="h2o", size=4), text())


def test_more_tokens_than_a_dense_cache_or_learned_positions_hold_are_refused():
    shape = dataclasses.replace(SMALL, dtype="float32")
    learned = dataclasses.replace(shape, position="learned", length=8)
    for network, policy, words in (
        (shape, Policy(kind="dense", size=11), "a dense cache has a place for each of 12 tokens"),
        (learned, Policy(kind="window", size=10), "learned 8 positions"),
        (learned, Policy(kind="window", size=4, positions="absolute"), "learned 8 positions"),
    ):
        for call in (prefill, decode):
            with pytest.raises(UsageError, match=words):
                call(network, params_of(network), policy, text(12))


def test_a_window_without_room_for_a_token_is_refused():
    shape = dataclasses.replace(SMALL, dtype="float32")
    params = params_of(shape)
    for size, words in (
        (0, "size is at least 1"),
        (np.int64(-3), "size is at least 1"),
        (True, "a whole number"),
        (4.0, "a whole number"),
    ):
        with pytest.raises(UsageError, match=words):
            recompute(shape, params, size, text(5))
    token = dataclasses.replace(shape, sink_token=True)
    with pytest.raises(UsageError, match="size=1 is not allowed: size is at least 2"):
        recompute(token, params_of(token), 1, text(5))


TEXTS = {
    "17 in tokens is not allowed: it is a number from 0 to 10": [1, 17],
    "-1 in tokens is not allowed: it is a number from 0 to 10": [-1, 3],
    r"tokens=float64\[2\] is not allowed": [1.5, 2.0],
    r"tokens=bool\[2\] is not allowed": [True, False],
    r"tokens=float64\[0\] is not allowed": [],
    "a length of 1 or more": np.zeros(0, np.int32),
}


@pytest.mark.parametrize("words", TEXTS)
def test_what_is_no_text_is_refused_by_all(words):
    shape, policy = dataclasses.replace(SMALL, dtype="float32"), Policy(kind="dense", size=4)
    params, tokens = params_of(shape), np.asarray(TEXTS[words])
    for call in (
        lambda: prefill(shape, params, policy, tokens),
        lambda: recompute(shape, params, 3, tokens),
        lambda: global_scores(shape, params, tokens),
        lambda: decode(shape, params, policy, tokens),
    ):
        with pytest.raises(UsageError, match=words):
            call()
    for call in (lambda: recompute(shape, params, 3, text(4)[None]), lambda: decode(shape, params, policy, text(4)[None])):
        with pytest.raises(UsageError, match=r"tokens=int64\[1,4\] is not allowed: it has one axis, and jax.vmap adds others"):
            call()
    with pytest.raises(UsageError, match=r"tokens=int64\[1\] is not allowed: its last axis has a length of 2 or more"):
        losses(shape, params, policy, text(1))


@pytest.mark.thinned
@pytest.mark.parametrize("call", [decode, losses, step])
def test_traced_numbers_beyond_the_vocabulary_are_found_by_checkify(call):
    shape, policy = dataclasses.replace(SMALL, layers=1, dtype="float32"), Policy(kind="window", size=3)
    params, tokens = params_of(shape), text(3)
    one = lambda t: step(shape, params, policy, start(shape, policy), t[2])  # noqa: E731
    run = one if call is step else lambda t: call(shape, params, policy, t)
    looked = jax.jit(checkify.checkify(lambda t: run(t)[1], errors=checkify.index_checks))
    assert looked(tokens)[0].get() is None
    tokens[2] = 12
    assert "index 12 is out of bounds" in looked(tokens)[0].get()
