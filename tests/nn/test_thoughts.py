"""Thoughts with a cache against everything computed again; gradients through them against finite differences; what is fed."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.experimental import checkify

from jaxdyn.errors import UsageError
from jaxdyn.nn import Transformer, thoughts
from jaxdyn.nn.transformer import trunk
from tests.nn.drawn import weights
from tests.nn.families import FAMILIES

SMALL = Transformer(vocabulary=7, width=8, layers=2, heads=4, hidden=6, std=0.5, length=12, dtype="float64")
KINDS = {
    "rotary": SMALL,
    "learned": dataclasses.replace(SMALL, position="learned"),
    "alibi, shared keys": dataclasses.replace(SMALL, position="alibi", groups=2),
    "used again": dataclasses.replace(SMALL, repeats=2),
    "sink token": dataclasses.replace(SMALL, sink_token=True),
    "sink bias": dataclasses.replace(SMALL, attention="sink_bias"),
}
TOKENS = np.asarray([[1, 4, 2, 6, 3], [0, 0, 5, 2, 1]])

# One program each: by itself every operation would be compiled.
trunk = jax.jit(trunk, static_argnums=0)
think = jax.jit(thoughts.think, static_argnums=(0, 3), static_argnames="feed")
whole = jax.jit(thoughts.whole, static_argnums=(0, 3))


@pytest.mark.thinned
@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow if k == "used again" else ()) for k in KINDS])
def test_cache_and_recomputation_give_the_same_thoughts(kind, x64):
    shape = KINDS[kind]
    params = weights(shape)
    cached = think(shape, params, TOKENS, 2)
    assert cached.shape == (3, 2, 8)
    np.testing.assert_allclose(cached, whole(shape, params, TOKENS, 2), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(np.asarray(cached)[0], np.asarray(trunk(shape, params, TOKENS))[:, -1], rtol=1e-10, atol=1e-10)


@pytest.mark.thinned
@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow if k == "used again" else ()) for k in KINDS])
def test_what_is_asked_aside_sees_the_inputs_before_it_and_itself(kind, x64):
    shape = KINDS[kind]
    params = weights(shape, 4)
    x, asked = np.random.default_rng(0).normal(size=(2, 2, 8, 8))[:, :, :3]
    prompt = np.random.default_rng(1).normal(size=(2, 4, 8))
    at = params["position"] if shape.position == "learned" else np.zeros((12, 8))

    @jax.jit
    def aside(params):
        past = thoughts.remember(shape, params, prompt)
        _, recent = thoughts.step(shape, params, past, thoughts.room(past, 3), x, 0)
        return thoughts.aside(shape, params, past, recent, asked)

    forward = jax.jit(lambda params, x: thoughts.forward(shape, params, x))
    for i, out in enumerate(np.moveaxis(aside(params), 1, 0)):
        text = np.concatenate([prompt, x[:, : i + 1], asked[:, i : i + 1]], 1)
        np.testing.assert_allclose(out, forward(params, text + at[: text.shape[1]])[:, -1], rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_float32_agrees_to_rounding():
    shape = dataclasses.replace(SMALL, dtype="float32")
    params = weights(shape)
    np.testing.assert_allclose(think(shape, params, TOKENS, 2), whole(shape, params, TOKENS, 2), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_gradients_run_through_thoughts(x64):
    shape = dataclasses.replace(SMALL, layers=1, width=4, heads=2)
    params = weights(shape, 1)
    direction = weights(shape, 2)

    def loss(params, feed):
        return jnp.sum(jnp.sin(thoughts.think(shape, params, TOKENS, 2, feed=feed)[-1]))

    def slope(feed):
        parts = jax.tree.map(lambda g, d: np.vdot(g, d), jax.jit(jax.grad(loss), static_argnums=1)(params, feed), direction)
        return float(sum(jax.tree.leaves(parts)))

    at = jax.jit(lambda h: loss(jax.tree.map(lambda p, d: p + h * d, params, direction), lambda hidden, _: hidden))
    finite = float(at(1e-6) - at(-1e-6)) / 2e-6
    assert slope(lambda hidden, _: hidden) == pytest.approx(finite, rel=1e-7)
    stopped = slope(lambda hidden, _: jax.lax.stop_gradient(hidden))
    assert abs(stopped - finite) > 0.01 * abs(finite)


def test_tokens_fed_one_by_one_are_a_text(x64):
    params = weights(SMALL, 3)
    more = jnp.asarray([[2, 2, 4], [6, 1, 0]])
    feed = lambda _, c: jnp.asarray(params["embed"])[more[:, jnp.minimum(c, 2)]]  # noqa: E731
    fed = think(SMALL, params, TOKENS, 3, feed=feed)
    text = trunk(SMALL, params, np.concatenate([TOKENS, more], 1))
    np.testing.assert_allclose(np.moveaxis(fed, 0, 1), np.asarray(text)[:, 4:], rtol=1e-10, atol=1e-10)


def test_too_few_positions_are_refused(x64):
    shape = KINDS["learned"]
    with pytest.raises(UsageError, match="12 positions"):
        thoughts.think(shape, weights(shape), TOKENS, 8)


IN_PARTS = {name: dataclasses.replace(shape, layers=1) for name, shape in KINDS.items() if name not in ("used again", "sink bias")}


@pytest.mark.thinned
@pytest.mark.parametrize("kind", IN_PARTS)
def test_inputs_in_parts_are_the_inputs_at_once(kind, x64):
    shape = IN_PARTS[kind]
    params, x = weights(shape, 5), np.random.default_rng(3).normal(size=(2, 4, 8))
    past = jax.jit(lambda p: thoughts.remember(shape, p, np.random.default_rng(4).normal(size=(2, 3, 8))))(params)
    step = jax.jit(lambda recent, x, slot: thoughts.step(shape, params, past, recent, x, slot))
    empty = thoughts.room(past, 5)
    whole, end = step(empty, x, 0)

    @settings(deadline=None, max_examples=4, derandomize=True)
    @given(st.permutations([1, 1, 2]))
    def check(lengths):
        recent, found, slot = empty, [], 0
        for length in lengths:
            hidden, recent = step(recent, x[:, slot : slot + length], slot)
            found.append(hidden)
            slot += length
        np.testing.assert_allclose(np.concatenate(found, 1), whole, rtol=1e-12, atol=1e-12)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), recent, end)

    check()


def memory(shape, prompt=3, places=2):
    past = thoughts.remember(shape, weights(shape), np.ones((1, prompt, 8), np.float32))
    return past, thoughts.room(past, places)


def test_what_has_no_place_is_refused():
    shape = dataclasses.replace(SMALL, dtype="float32", layers=1)
    params, (past, recent), x = weights(shape), memory(shape), np.ones((1, 3, 8), np.float32)
    for slot, words in (
        (2, "at most 1"),
        (-1, "at least 0"),
        (1.0, "whole number"),
        (True, "whole number"),
        (np.int64(9), "at most 1"),
    ):
        with pytest.raises(UsageError, match=f"slot={slot} is not allowed: slot is .*{words}"):
            thoughts.step(shape, params, past, recent, x[:, :1], slot)
    with pytest.raises(UsageError, match=r"x=float32\[1,3,8\] is not allowed: there are 2 places after the prompt"):
        thoughts.step(shape, params, past, recent, x, 0)
    with pytest.raises(UsageError, match=r"x=float32\[1,3,8\] is not allowed: it has one input for each of 2 places"):
        thoughts.aside(shape, params, past, recent, x)
    for places in (0, -1, 2.0, True):
        with pytest.raises(UsageError, match=f"places={places} is not allowed"):
            thoughts.room(past, places)
    for other in (past[:0], past * 2, [thoughts.Memory(m.key[:, :2], m.value[:, :2]) for m in past]):
        with pytest.raises(UsageError, match="this one remembers 1 layers of 4 heads of 2 numbers"):
            thoughts.step(shape, params, other, recent, x[:, :1], 0)


def test_learned_positions_end_for_all(x64):
    shape = dataclasses.replace(KINDS["learned"], layers=1, length=4)
    params, (past, recent), x = weights(shape), memory(shape, prompt=3), np.ones((1, 2, 8))
    for call in (
        lambda: thoughts.remember(shape, params, np.ones((1, 5, 8))),
        lambda: thoughts.step(shape, params, past, recent, x, 0),
        lambda: thoughts.step(shape, params, past, recent, x[:, :1], 1),
        lambda: thoughts.aside(shape, params, past, recent, x),
        lambda: thoughts.whole(shape, params, TOKENS, 1),
    ):
        with pytest.raises(UsageError, match="learned 4 positions"):
            call()


def test_a_traced_slot_without_a_place_is_found_by_checkify(x64):
    shape = dataclasses.replace(SMALL, layers=1)
    params, (past, recent), x = weights(shape), memory(shape), np.ones((1, 1, 8))
    run = checkify.checkify(lambda slot: thoughts.step(shape, params, past, recent, x, slot)[0], errors=checkify.index_checks)
    errors = [jax.jit(run)(slot)[0].get() for slot in (1, 2)]
    assert errors[0] is None and "index 2 is out of bounds" in errors[1]


@pytest.mark.parametrize("call", [thoughts.think, thoughts.whole])
def test_prompts_and_counts_are_checked(call):
    shape = dataclasses.replace(SMALL, dtype="float32", layers=1)
    params = weights(shape)
    for count in (-1, True, 2.0, None, np.asarray([1])):
        with pytest.raises(UsageError, match="count=.* is not allowed: count is "):
            call(shape, params, TOKENS, count)
    for tokens in (TOKENS + 3, -TOKENS, TOKENS * 1.0, TOKENS > 2, TOKENS[:, :0], 3):
        with pytest.raises(UsageError, match="tokens.*is not allowed"):
            call(shape, params, tokens, 1)
    more = dataclasses.replace(shape, layers=2)
    with pytest.raises(UsageError, match="these weights are of another network: of blocks/attention_norm"):
        call(more, params, TOKENS, 1)


@pytest.mark.parametrize("name", ["mistral", "neox", "llama 3"])
def test_the_published_families_pass_as_the_decoder_does(name, x64):
    shape = Transformer(vocabulary=11, width=12, layers=2, heads=3, hidden=10, std=0.7, dtype="float64", **FAMILIES[name])
    params, tokens = weights(shape), np.random.default_rng(0).integers(0, 11, (2, 8))
    ours = jax.jit(lambda p: thoughts.forward(shape, p, thoughts.entered(shape, p, tokens)))(params)
    np.testing.assert_allclose(ours, trunk(shape, params, tokens), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("count", [0, 2])
def test_a_prompt_may_be_one_token(count, x64):
    params = weights(SMALL)
    one = TOKENS[:, :1]
    found, expected = (jax.jit(lambda p, f=f: f(SMALL, p, one, count))(params) for f in (thoughts.think, thoughts.whole))
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_thoughts_keep_their_dtype():
    shape = dataclasses.replace(SMALL, position="alibi", dtype="bfloat16")
    params = weights(shape)
    found, whole = (jax.jit(lambda p, f=f: f(shape, p, TOKENS, 2))(params) for f in (thoughts.think, thoughts.whole))
    assert found.dtype == whole.dtype == jnp.bfloat16
    np.testing.assert_allclose(found.astype(jnp.float32), whole.astype(jnp.float32), atol=0.15)
