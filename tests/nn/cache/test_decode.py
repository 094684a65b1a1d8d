"""Decoding against Python lists for caches: every policy, kind of attention and kind of positions."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.errors import UsageError
from jaxdyn.nn.cache import Policy, decode, generate, global_scores, losses, start, step
from tests.nn.cache.helpers import SMALL, apply, params_of, text
from tests.nn.cache.plain_cache import decoded
from tests.nn.families import FAMILIES

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


@pytest.mark.thinned
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


IN_CACHES = {  # each family with a policy, and windows with all kinds of positions
    "llama, linear": {"kind": "streaming", "size": 7, "sinks": 3},
    "llama 3": {"kind": "h2o", "size": 6, "recent": 3},
    "a table of divisors": {"kind": "streaming", "size": 6, "sinks": 2, "positions": "absolute"},
    "mistral": {"kind": "streaming", "size": 6, "sinks": 2},
    "mistral, absolute": {"kind": "h2o", "size": 6, "recent": 2, "positions": "absolute"},
    "mistral, dense": {"kind": "dense", "size": 20},
    "mistral, sums": {"kind": "h2o", "size": 8, "recent": 2},
    "qwen2": {"kind": "anti_h2o", "size": 6, "recent": 3},
    "neox": {"kind": "h2o", "size": 6, "recent": 2, "score": "mean"},
    "gpt2": {"kind": "window", "size": 6},
    "opt": {"kind": "streaming", "size": 6, "sinks": 1, "positions": "absolute"},
    "gated biases": {"kind": "oracle_global", "size": 6, "recent": 3},
}


@pytest.mark.thinned
@pytest.mark.parametrize("name", IN_CACHES)
def test_families_against_lists(name, x64):
    shape, policy = (
        dataclasses.replace(SMALL, **FAMILIES[name.partition(", ")[0] if "mistral" in name else name]),
        Policy(**IN_CACHES[name]),
    )
    params, tokens = params_of(shape), text()
    given = scores(shape, params, tokens) if policy.kind == "oracle_global" else None
    _, logits = jax.jit(lambda p, t: decode(shape, p, policy, t, given=given))(params, tokens)
    expected, _ = decoded(shape, jax.tree.map(np.asarray, params), np.asarray(tokens), policy, given)
    np.testing.assert_allclose(logits, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.thinned
@pytest.mark.parametrize(
    "name",
    [
        "streaming",
        "absolute positions, sinks of the softmax",
        pytest.param("sums", marks=pytest.mark.slow),
        pytest.param("all blocks used again", marks=pytest.mark.slow),
        "global",
    ],
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


IN_PARTS = {  # every policy, and every kind of positions
    "dense": ({"position": "alibi"}, {"kind": "dense", "size": 10}),
    "dense, layers written out": ({"scan": False, "sink_token": True}, {"kind": "dense", "size": 10}),
    "window": ({"position": "learned", "length": 9}, {"kind": "window", "size": 4, "positions": "absolute"}),
    "streaming": ({"sink_token": True}, {"kind": "streaming", "size": 4, "sinks": 1}),
    "h2o": ({"repeats": 2}, {"kind": "h2o", "size": 4, "recent": 2, "score": "mean"}),
    "anti_h2o, layers written out": ({"scan": False}, {"kind": "anti_h2o", "size": 4, "score": "decay"}),
    "random": ({"position": "learned", "length": 4}, {"kind": "random", "size": 4, "recent": 2}),
    "oracle_global": ({"sink_token": True}, {"kind": "oracle_global", "size": 4, "recent": 2}),
}


@pytest.mark.thinned
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n == "dense, layers written out" else ()) for n in IN_PARTS]
)
def test_a_text_in_parts_is_the_text_at_once(name, x64):
    """Parts of three and four tokens by ``decode``, of one by ``step``, in any order, from the empty cache on."""
    change, fields = IN_PARTS[name]
    shape, policy, tokens = dataclasses.replace(SMALL, layers=1, **change), Policy(**fields), text(9)
    params = params_of(shape)
    more = {"given": scores(shape, params, tokens) if policy.kind == "oracle_global" else None, "key": jax.random.key(0)}
    end, whole = jax.jit(lambda t: decode(shape, params, policy, t, **more))(tokens)
    part = jax.jit(lambda t, state: decode(shape, params, policy, t, state=state, **more))
    one = jax.jit(lambda t, state: step(shape, params, policy, state, t, **more))
    empty = start(shape, policy)

    @settings(deadline=None, max_examples=4, derandomize=True)
    @given(st.permutations([1, 1, 3, 4]))
    def check(lengths):
        state, found, first = empty, [], 0
        for length in lengths:
            if length > 1:
                state, logits = part(tokens[first : first + length], state)
                found.append(logits)
            else:
                if shape.sink_token and first == 0:
                    state, _ = one(shape.vocabulary, state)
                state, logits = one(int(tokens[first]), state)
                found.append(logits[None])
            first += length
        np.testing.assert_allclose(np.concatenate(found), whole, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(state.layers.born, end.layers.born)
        assert int(state.time) == int(end.time) == 9 + shape.sink_token

    check()


@pytest.mark.slow
@pytest.mark.parametrize("token", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_losses_in_parts_that_overlap_by_a_token_are_those_at_once(token, x64):
    shape = dataclasses.replace(SMALL, layers=1, sink_token=token)
    params, policy, tokens = params_of(shape), Policy(kind="h2o", size=4, recent=2), text(10)
    end, whole = jax.jit(lambda t: losses(shape, params, policy, t))(tokens)
    part = jax.jit(lambda t, state: losses(shape, params, policy, t, state=state))

    @settings(deadline=None, max_examples=4, derandomize=True)
    @given(st.permutations([1, 1, 3, 4]))
    def check(lengths):
        state, found, first = start(shape, policy), [], 0
        for length in lengths:
            state, nats = part(tokens[first : first + length + 1], state)
            found.append(nats)
            first += length
        np.testing.assert_allclose(np.concatenate(found), whole, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(state.layers.born, end.layers.born)

    check()


@pytest.mark.thinned
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


def state_after(shape, policy, count):
    """A cache that has had so many tokens, none of which was read."""
    return start(shape, policy)._replace(time=jnp.int32(count))


FULL = {  # network, policy and tokens before, to which one or two more can come, and three not
    "a dense cache has a place for each of 10 tokens": ({}, {"kind": "dense", "size": 9}, 7),
    "a dense cache has a place for each of 9 tokens": ({"sink_token": True}, {"kind": "dense", "size": 8}, 6),
    r"learned 8 positions \(length\), the policy uses 9": (
        {"position": "learned", "length": 8},
        {"kind": "window", "size": 4, "positions": "absolute"},
        6,
    ),
    r"learned 5 positions \(length\), the policy uses 6": ({"position": "learned", "length": 5}, {"kind": "h2o", "size": 7}, 3),
    "32 bits": ({}, {"kind": "window", "size": 4}, 2**31 - 3),
}


@pytest.mark.parametrize("words", FULL)
@pytest.mark.parametrize("scan", [True, False])
def test_what_a_stream_has_had_counts(words, scan):
    """Three tokens more are refused if one call or the last of three single ones brings them."""
    change, fields, had = FULL[words]
    shape, policy = dataclasses.replace(SMALL, dtype="float32", scan=scan, **change), Policy(**fields)
    params, state = params_of(shape), state_after(shape, policy, had)
    for call in (
        lambda: decode(shape, params, policy, text(3), state=state),
        lambda: losses(shape, params, policy, text(4), state=state),
        lambda: step(shape, params, policy, state_after(shape, policy, had + 2), text(1)[0]),
    ):
        with pytest.raises(UsageError, match=words):
            call()


@pytest.mark.thinned
@pytest.mark.parametrize("name", list(FULL)[:-1])
def test_where_the_time_is_traced_a_full_stream_is_nan(name, x64):
    change, fields, had = FULL[name]
    shape, policy = dataclasses.replace(SMALL, layers=1, **change), Policy(**fields)
    params = params_of(shape)
    run = jax.jit(jax.vmap(lambda t, state: decode(shape, params, policy, t, state=state)[1], (None, 0)))
    times = [had - 1, had]
    logits = run(text(3), jax.tree.map(lambda *x: jnp.stack(x), *(state_after(shape, policy, t) for t in times)))
    np.testing.assert_array_equal(np.isnan(logits).all(-1), [[False] * 3, [False, False, True]])
    assert np.isnan(logits).sum() == shape.vocabulary
    one = jax.jit(lambda t, state: step(shape, params, policy, state, t)[1])
    assert (
        np.isnan(one(3, state_after(shape, policy, had + 2))).all() and np.isfinite(one(3, state_after(shape, policy, had))).all()
    )


def test_given_of_a_part_is_refused_or_nan(x64):
    shape, policy = dataclasses.replace(SMALL, layers=1), Policy(kind="oracle_global", size=4)
    params, state, given = params_of(shape), state_after(shape, policy, 6), np.ones((1, 2, 8))
    with pytest.raises(UsageError, match=r"given=float64\[1,2,8\] is not allowed: it has the shape \[1,2,9\], or more tokens"):
        decode(shape, params, policy, text(3), state=state, given=given)
    with pytest.raises(UsageError, match=r"given=float64\[1,1,8\] is not allowed: it has the shape \[1,2,3\]"):
        decode(shape, params, policy, text(3), given=given[:, :1])
    with pytest.raises(UsageError, match="given= is not allowed with kind='h2o': it is for oracle_global"):
        decode(shape, params, Policy(kind="h2o", size=4), text(3), given=given)
    logits = jax.jit(lambda state: decode(shape, params, policy, text(3), state=state, given=given)[1])(state)
    assert np.isnan(logits).all(-1).tolist() == [False, False, True]


def test_a_state_of_another_policy_or_network_is_refused():
    shape, policy = dataclasses.replace(SMALL, dtype="float32"), Policy(kind="window", size=6)
    params, state = params_of(shape), start(shape, policy)
    run = lambda s, p, state: decode(s, params, p, text(3), state=state)  # noqa: E731
    for change, words in (
        ({"positions": "absolute"}, "made by another policy, with positions=cache, not absolute"),
        ({"size": 5}, "size=6, not 5"),
        ({"kind": "h2o", "score": "mean"}, "kind=window, not h2o, score=sum, not mean"),
    ):
        for inside in (lambda f: f, jax.jit):
            with pytest.raises(UsageError, match=words):
                inside(lambda state, change=change: run(shape, dataclasses.replace(policy, **change), state))(state)
    for change in ({"dtype": "bfloat16"}, {"base": 500.0}, {"groups": 4}, {"layers": 3}):
        with pytest.raises(UsageError, match="made by another network"):
            run(dataclasses.replace(shape, **change), policy, state)
    many = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    with pytest.raises(UsageError, match=r"its key is float32\[2,2,2,6,4\], a stream's is float32\[2,2,6,4\]; jax.vmap"):
        run(shape, policy, many)
    with pytest.raises(UsageError, match=r"its score is float16\[2,2,6\], a stream's is float32"):
        layers = state.layers._replace(score=state.layers.score.astype("float16"))
        run(shape, policy, state._replace(layers=layers))
    with pytest.raises(UsageError, match="state=None is not allowed"):
        step(shape, params, policy, None, 1)


def test_the_sink_token_is_the_first_token_and_no_other():
    shape, policy = dataclasses.replace(SMALL, sink_token=True, dtype="float32"), Policy(kind="streaming", size=6, sinks=1)
    params, empty = params_of(shape), start(shape, policy)
    with pytest.raises(UsageError, match="token=3 is not allowed after 0 tokens: the sink token, number 11, is the first"):
        step(shape, params, policy, empty, 3)
    with pytest.raises(UsageError, match="token=11 is not allowed after 1 tokens"):
        step(shape, params, policy, state_after(shape, policy, 1), 11)
    with pytest.raises(UsageError, match="11 in tokens is not allowed: it is a number from 0 to 10"):
        decode(shape, params, policy, np.asarray([11, 3]))
    known = decode(shape, params, policy, text(4), state=empty)[1]  # its time is known, in the text above traced
    np.testing.assert_array_equal(known, decode(shape, params, policy, text(4))[1])


def test_bytes_are_tokens_also_with_a_sink_token_that_no_byte_has(x64):
    shape = dataclasses.replace(SMALL, layers=1, vocabulary=256, sink_token=True)
    params, policy = params_of(shape), Policy(kind="window", size=4)
    run = jax.jit(lambda t: decode(shape, params, policy, t)[1])
    np.testing.assert_array_equal(run(text(6).astype(np.uint8)), run(text(6)))


def test_what_does_not_fit_is_refused(x64):
    with pytest.raises(UsageError, match="a dense cache has a place for each of 20 tokens"):
        decode(SMALL, params_of(SMALL), Policy(kind="dense", size=19), text())
    shape = dataclasses.replace(SMALL, position="learned", length=8)
    with pytest.raises(UsageError, match="learned 8 positions"):
        decode(shape, params_of(shape), Policy(kind="window", size=4, positions="absolute"), text())


@pytest.mark.parametrize("outputs", [3, 200])
@pytest.mark.parametrize("call", [lambda *given: losses(*given), lambda *given: generate(*given, 2)], ids=["losses", "generate"])
def test_logits_that_are_no_tokens_are_not_fed_back(call, outputs):
    shape = dataclasses.replace(SMALL, outputs=outputs)
    words = f"outputs={outputs}, vocabulary={SMALL.vocabulary} are not allowed: logits of the next token are one for each token"
    with pytest.raises(UsageError, match=words):
        call(shape, {}, Policy(kind="dense", size=9), np.arange(5))
