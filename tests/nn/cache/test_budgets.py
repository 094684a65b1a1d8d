"""Caches: their state, policies, budgets, and generated text."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.nn import Transformer, attention, cache, network
from jaxdyn.nn.cache import Policy, attend, budgets, bytes_held, decode, generate, losses, start, victim
from jaxdyn.nn.cache.state import placed, stays
from tests.nn.cache.helpers import SMALL, apply, params_of, text
from tests.nn.drawn import weights

# All policies in one program against the caches of fixed size, token by token.


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


# Sizes of caches to the byte, positions within them, and that no buffer grows with the text.


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


# Victims of every policy on caches written down by hand.


BORN = jnp.asarray([[0, 6, 7, 3], [7, 0, 1, 6]])  # two heads; the current token is 8
SCORE = jnp.asarray([[2.0, 0.4, 0.1, 0.9], [0.3, 3.0, 0.2, 0.6]])


def places(kind, *, key=None, whole=None, **more):
    policy = Policy(kind=kind, size=4, **more)
    return np.asarray(victim(policy, BORN, SCORE, jnp.asarray(8), given=whole, key=key)).tolist()


@pytest.mark.parametrize(
    ("kind", "more", "expected"),
    [
        ("window", {}, [0, 1]),
        ("streaming", {"sinks": 0}, [0, 1]),
        ("streaming", {"sinks": 1}, [3, 2]),
        ("streaming", {"sinks": 2}, [3, 3]),
        ("h2o", {}, [2, 2]),
        ("h2o", {"recent": 2}, [1, 2]),
        ("h2o", {"recent": 3}, [3, 2]),
        ("h2o", {"recent": 4}, [3, 2]),
        ("h2o", {"score": "mean"}, [2, 2]),  # means 0.25, 0.2, 0.1, 0.18 and 0.3, 0.375, 0.029, 0.3
        ("h2o", {"score": "mean", "recent": 2}, [3, 2]),
        ("anti_h2o", {}, [0, 1]),
        ("anti_h2o", {"recent": 4}, [0, 1]),
    ],
)
def test_victims(kind, more, expected):
    assert places(kind, **more) == expected


def test_the_oracle_looks_at_given_scores_alone():
    whole = jnp.asarray([[0.1, 9, 9, 9, 9, 9, 9, 9, 9], [9.0, 9, 9, 9, 9, 9, 0.2, 0.1, 9]])
    assert places("oracle_global", whole=whole) == [0, 0]
    assert places("oracle_global", whole=whole, recent=2) == [0, 3]
    with pytest.raises(UsageError, match="needs given"):
        places("oracle_global")


def test_random_victims_are_uniform_over_what_is_not_recent():
    drawn = np.stack([places("random", key=jax.random.key(i), recent=2) for i in range(300)])
    assert set(drawn[:, 0]) == {0, 1, 3} and set(drawn[:, 1]) == {1, 2, 3}
    counts = np.bincount(drawn[:, 0], minlength=4)[[0, 1, 3]]
    assert np.all(np.abs(counts - 100) < 5 * np.sqrt(300 * 2 / 9))
    assert np.mean(drawn[:, 0] == drawn[:, 1]) < 0.5  # heads draw by themselves
    with pytest.raises(UsageError, match="needs a key"):
        places("random")


def test_numbers_of_a_policy_may_be_traced():
    def chosen(sinks):
        return victim(Policy(kind="streaming", size=4, sinks=sinks), BORN, SCORE, jnp.asarray(8))

    np.testing.assert_array_equal(jax.jit(jax.vmap(chosen))(jnp.asarray([0, 1, 2])), [[0, 1], [3, 2], [3, 3]])


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "lru"},
        {"size": 1},
        {"sinks": 4},
        {"recent": 0},
        {"recent": 5},
        {"decay": 1.5},
        {"score": "max"},
        {"positions": "x"},
    ],
)
def test_wrong_policies_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Policy(**({"kind": "streaming", "size": 4} | wrong))


KINDS = {  # of one number
    "Python": lambda n: n,
    "NumPy's scalar": lambda n: np.float64(n) if isinstance(n, float) else np.int64(n),
    "NumPy's array": np.asarray,
    "JAX's": jnp.asarray,
}


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    st.sampled_from(list(KINDS)),
    st.integers(-1, 7),
    st.integers(-1, 7),
    st.integers(0, 6),
    st.sampled_from([-0.1, 0.0, 0.5, 1.0, 1.5]),
)
def test_a_number_is_checked_whichever_library_it_is_of(kind, sinks, recent, size, decay):
    make, fields = KINDS[kind], {"kind": "streaming"}
    numbers = {"sinks": sinks, "recent": recent, "size": size, "decay": decay}
    if size >= 2 and 0 <= sinks < size and 1 <= recent <= size and 0 <= decay <= 1:
        policy = Policy(**fields, **{name: make(n) for name, n in numbers.items()})
        assert all(type(getattr(policy, name)) in (int, float) for name in numbers)
        assert policy == Policy(**fields, **{name: n if name != "decay" else policy.decay for name, n in numbers.items()})
        assert policy.decay == pytest.approx(decay)
    else:
        with pytest.raises(UsageError, match="not allowed"):
            Policy(**fields, **{name: make(n) for name, n in numbers.items()})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sinks": np.int64(10)}, "sinks=10, size=4 are not allowed: sinks is at least 0 and below size"),
        ({"size": 8.0}, "size=8.0 is not allowed: size is a whole number, at least 2"),
        ({"size": True}, "size=True is not allowed: size is a whole number, at least 2"),
        ({"recent": np.int64(0)}, "recent=0 is not allowed: recent is at least 1"),
        ({"recent": np.True_}, "recent=True is not allowed: recent is a whole number, at least 1"),
        ({"sinks": 1.5}, "sinks=1.5 is not allowed: sinks is a whole number, at least 0"),
        ({"sinks": np.asarray([1, 2])}, r"sinks=int64\[2\] is not allowed: sinks is a whole number, at least 0"),
        ({"sinks": None}, "sinks=None is not allowed: sinks is a whole number, at least 0"),
        ({"decay": np.float64(2)}, "decay=2.0 is not allowed: decay is at least 0 and at most 1"),
        ({"decay": 2}, "decay=2 is not allowed: decay is at least 0 and at most 1"),
        ({"decay": np.nan}, "decay=nan is not allowed: decay is a finite number, at least 0 and at most 1"),
        ({"decay": True}, "decay=True is not allowed: decay is a finite number, at least 0 and at most 1"),
    ],
)
def test_what_is_no_number_of_its_range_is_refused_in_one_sentence(wrong, words):
    with pytest.raises(UsageError, match=f"^{words}$"):
        Policy(**({"kind": "streaming", "size": 4} | wrong))


def test_traced_numbers_are_checked_by_dtype_and_shape():
    def made(sinks, decay):
        for wrong in ({"sinks": decay}, {"decay": sinks > 0}, {"sinks": sinks[None]}, {"size": sinks}):
            with pytest.raises(UsageError, match="not allowed"):
                Policy(**({"kind": "h2o", "size": 4} | wrong))
        return Policy(kind="h2o", size=4, sinks=sinks, decay=decay)

    many = jax.jit(jax.vmap(made))(jnp.arange(3), jnp.zeros(3))  # the policy that comes out is one of three: not checked again
    assert many.sinks.tolist() == [0, 1, 2] and many.size == 4
    with pytest.raises(UsageError, match=r"sinks=int32\[3\] is not allowed: a policy has one number; jax.vmap takes many"):
        shape = dataclasses.replace(SMALL, dtype="float32")
        decode(shape, params_of(shape), many, text(3))


# Generated text against a loop that reads the whole text again for each token; streams, parts, temperatures, refusals.


STREAMING = Policy(kind="streaming", size=6, sinks=2)
jitted = jax.jit(generate, static_argnums=(0, 4))


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
def test_greedy_text_is_that_of_the_whole_network():
    """With a cache that holds everything: each new token is the argmax of the logits after the whole text before it."""
    params, tokens = params_of(SMALL), jnp.asarray(text(4))
    _, new = jitted(SMALL, params, Policy(kind="dense", size=12), tokens, 5)
    logits = apply(SMALL, params, jnp.concatenate([tokens, new])[None])[0]
    np.testing.assert_array_equal(new, jnp.argmax(logits[3:-1], -1))


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
def test_streams_are_what_each_is_alone_and_parts_are_the_whole():
    params, key = params_of(SMALL), jax.random.key(3)
    prompts = jnp.stack([jnp.asarray(text(4)), jnp.asarray(text(4))[::-1]])
    states, drawn = jitted(SMALL, params, STREAMING, prompts, 9, temperature=0.7, key=key)
    for i in range(2):
        state, alone = jitted(SMALL, params, STREAMING, prompts[i], 9, temperature=0.7, key=jax.random.fold_in(key, i))
        np.testing.assert_array_equal(drawn[i], alone)
        assert int(state.time) == int(states.time[i]) == 4 + 9 - 1
    state, whole = jitted(SMALL, params, STREAMING, prompts[0], 9)
    state, first = jitted(SMALL, params, STREAMING, prompts[0], 4)
    _, second = jitted(SMALL, params, STREAMING, first[-1:], 5, state=state)
    np.testing.assert_array_equal(jnp.concatenate([first, second]), whole)
    both, _ = jitted(SMALL, params, STREAMING, prompts, 4)
    _, later = jitted(SMALL, params, STREAMING, jnp.stack([first[-1:], first[-1:]]), 5, state=both)
    np.testing.assert_array_equal(later[0], second)


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
def test_draws_have_the_probabilities_of_the_softmax():
    """4000 first tokens against softmax(logits / 2): each count within five standard deviations."""
    params, prompt = params_of(SMALL), jnp.asarray(text(3))
    _, logits = decode(SMALL, params, STREAMING, prompt)
    p = np.asarray(jax.nn.softmax(logits[-1] / 2), np.float64)
    _, drawn = jitted(SMALL, params, STREAMING, jnp.tile(prompt, (4000, 1)), 1, temperature=2.0, key=jax.random.key(0))
    counts = np.bincount(np.asarray(drawn[:, 0]), minlength=SMALL.vocabulary)
    assert np.all(np.abs(counts - 4000 * p) <= 5 * np.sqrt(4000 * p * (1 - p)) + 1)


@pytest.mark.usefixtures("x64")
def test_what_is_not_allowed():
    params, prompt = params_of(SMALL), jnp.asarray(text(4))
    for arguments, options, sentence in (
        ((STREAMING, prompt, 0), {}, "count=0 is not allowed"),
        ((STREAMING, prompt[None, None], 1), {}, "a prompt with 3 axes is not allowed"),
        ((STREAMING, [[0, 1], [0]], 1), {}, r"prompt=\[\[0, 1\], \[0\]\] is not allowed: its lists have equal lengths"),
        ((STREAMING, [[-1, 1], [0, 1]], 1), {}, "-1 in prompt is not allowed: it is a number from 0 to"),
        ((STREAMING, np.ma.masked_equal([[0, 1], [1, 1]], 0), 1), {}, r"prompt=int64\[2,2\] is not allowed with a mask"),
        ((STREAMING, prompt, 2), {"temperature": 1.0}, "random numbers need a key"),
        ((STREAMING, prompt, 2), {"temperature": -1.0}, "temperature=-1.0 is not allowed"),
        ((Policy(kind="oracle_global", size=6), prompt, 2), {}, "looks at the whole text"),
        ((Policy(kind="dense", size=6), prompt, 4), {}, "6"),
    ):
        with pytest.raises(UsageError, match=sentence):
            generate(SMALL, params, *arguments, **options)


@pytest.mark.usefixtures("x64")
def test_caches_are_a_name_of_the_networks():
    assert "cache" in nn.__all__ and nn.cache.generate is generate


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("tau", [1e-30, 1e-37, 1e-38, 1e-45, 1e-300])
def test_the_smallest_temperatures_are_greedy(tau):
    params, tokens, policy = params_of(SMALL), jnp.asarray(text(4)), Policy(kind="dense", size=12)
    _, greedy = jitted(SMALL, params, policy, tokens, 5)
    _, drawn = jitted(SMALL, params, policy, tokens, 5, temperature=tau, key=jax.random.key(0))
    np.testing.assert_array_equal(drawn, greedy)
