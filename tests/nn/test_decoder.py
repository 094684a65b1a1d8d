"""The decoder against NumPy, its scan against layers written out, its sizes against the published ones."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify

from jaxdyn.errors import UsageError
from jaxdyn.nn import count
from jaxdyn.nn.decoder import LLAMA, Decoder, apply, decoder, init, llama, parts, placed, trunk
from jaxdyn.nn.rotary import Scaling
from jaxdyn.text import language
from tests.nn import plain_decoder
from tests.nn.drawn import weights
from tests.nn.families import FAMILIES

SMALL = Decoder(vocabulary=11, width=12, layers=3, heads=3, hidden=10, std=0.7, dtype="float64")
apply = jax.jit(apply, static_argnums=0, static_argnames="observe")  # as one program: by itself every operation would be compiled

KINDS = [  # of attention and positions
    {"position": "alibi", "attention": "sink_bias", "groups": 1},
    {"position": "learned", "length": 9, "attention": "zero_sink"},
    {"position": "none", "attention": "sigmoid", "width": 9},
    {"attention": "relu"},
    {"sink_token": True},
    {"sink_token": True, "position": "learned", "length": 8, "tied": True, "scan": False},
    {"repeats": 2},
    {"repeats": 3, "order": "all", "scan": False, "layers": 2},
]


def tokens(b=2, n=7, v=11):
    return np.random.default_rng(0).integers(0, v, (b, n))


@pytest.mark.thinned
@pytest.mark.parametrize("change", [{}, {"groups": 1}, {"tied": True}, {"heads": 2, "groups": 2}, {"scan": False}, *KINDS])
def test_numpy_forward(change, x64):
    shape = dataclasses.replace(SMALL, **change)
    params = weights(shape)
    ours = apply(shape, params, tokens())
    plain = jax.tree.map(np.asarray, params)
    theirs = np.stack([plain_decoder.logits(shape, plain, row) for row in np.asarray(tokens())])
    np.testing.assert_allclose(ours, theirs, atol=1e-10)
    assert np.std(theirs) > 0.1


@pytest.mark.thinned
@pytest.mark.parametrize("name", FAMILIES)
def test_numpy_forward_of_the_families(name, x64):
    shape = dataclasses.replace(SMALL, **{"width": 12, "groups": 1} | FAMILIES[name])
    params = weights(shape)
    ours = apply(shape, params, tokens())
    plain = jax.tree.map(np.asarray, params)
    theirs = np.stack([plain_decoder.logits(shape, plain, row) for row in np.asarray(tokens())])
    np.testing.assert_allclose(ours, theirs, atol=1e-10)
    assert np.std(theirs) > 0.1 and {f"{name}_bias" for name in shape.biases} <= set(params["blocks"])


@pytest.mark.slow
def test_scanned_and_written_out_layers_are_one_network(x64):
    net, plain = decoder(SMALL), decoder(dataclasses.replace(SMALL, scan=False))
    params, names = jax.jit(net.init)(jax.random.key(0)), ("attention", "entropy", "inputs")
    (a, seen_a), (b, seen_b) = (jax.jit(lambda p, n=n: n.apply(p, tokens(), observe=names))(params) for n in (net, plain))
    np.testing.assert_allclose(a, b, atol=1e-12)
    for name in names:
        np.testing.assert_allclose(seen_a[name], seen_b[name], atol=1e-12)
    assert seen_a["attention"].shape == (3, 2, 3, 7, 7) and seen_a["inputs"].shape == (3, 2, 7, 12)
    np.testing.assert_allclose(jnp.sum(seen_a["attention"], -1), 1)
    np.testing.assert_array_equal(seen_a["inputs"][0], params["embed"][tokens()])


@pytest.mark.slow
def test_a_sink_token_is_a_trained_token_before_the_text(x64):
    shape = dataclasses.replace(SMALL, sink_token=True)
    params = weights(shape)
    wider = dataclasses.replace(SMALL, vocabulary=12)
    given = {name: x for name, x in params.items() if name != "sink_token"}
    given |= {"embed": np.concatenate([params["embed"], np.asarray(params["sink_token"])[None]])}
    explicit = np.concatenate([np.full((2, 1), 11), tokens()], 1)
    ours, seen = apply(shape, params, tokens(), observe=("attention",))
    theirs, expected = apply(wider, given, explicit, observe=("attention",))
    np.testing.assert_allclose(ours, np.asarray(theirs)[:, 1:], atol=1e-12)
    np.testing.assert_allclose(seen["attention"], expected["attention"], atol=1e-12)
    assert seen["attention"].shape == (3, 2, 3, 8, 8)
    gradient = jax.jit(jax.grad(lambda p: jnp.sum(apply(shape, p, tokens()) ** 2)))(params)
    assert np.max(np.abs(gradient["sink_token"])) > 1e-6, "it is trained"


@pytest.mark.parametrize("change", [{}, {"sink_token": True, "position": "learned", "length": 8}])
def test_the_parts_are_the_whole(change, x64):
    shape = dataclasses.replace(SMALL, **change)
    params = weights(shape)
    enter, block, last = map(jax.jit, parts(shape))
    x = enter(params, tokens())
    for layer in range(shape.layers):
        x = block({name: np.asarray(w)[layer] for name, w in params["blocks"].items()}, x)
    np.testing.assert_allclose(last(params, x), apply(shape, params, tokens()), atol=1e-12)


def test_the_order_of_repeated_blocks():
    assert dataclasses.replace(SMALL, repeats=2).walk == (0, 0, 1, 1, 2, 2)
    assert dataclasses.replace(SMALL, repeats=2, order="all").walk == (0, 1, 2, 0, 1, 2)
    assert SMALL.walk == (0, 1, 2) and SMALL.depth == 3


@pytest.mark.slow
def test_repeated_blocks_are_an_unrepeated_network_with_equal_weights(x64):
    shape = dataclasses.replace(SMALL, repeats=2)
    params = weights(shape)
    assert count(params) == count(weights(SMALL))
    twice = params | {"blocks": jax.tree.map(lambda w: jnp.asarray(np.repeat(w, 2, 0)), params["blocks"])}
    deep = dataclasses.replace(SMALL, layers=6)

    def loss(shape, p):
        return language.loss(decoder(shape), p, tokens(), tokens())

    (a, da), (b, db) = (jax.jit(jax.value_and_grad(lambda p, s=s: loss(s, p)))(p) for s, p in ((shape, params), (deep, twice)))
    np.testing.assert_allclose(a, b, rtol=1e-12)
    for name, w in da["blocks"].items():
        both = np.asarray(db["blocks"][name]).reshape(w.shape[0], 2, *w.shape[1:]).sum(1)
        np.testing.assert_allclose(w, both, rtol=1e-9, atol=1e-14)
    other = dataclasses.replace(shape, order="all")
    assert np.max(np.abs(np.asarray(apply(shape, params, tokens())) - apply(other, params, tokens()))) > 1e-3
    assert jax.eval_shape(lambda p: language.evaluate(decoder(shape), p, tokens(), 3), params).entropy.shape == (6,)


def size_of_program(shape):
    params = jax.eval_shape(lambda: init(shape, jax.random.key(0)))
    gradient = jax.grad(lambda p, t: jnp.sum(apply(shape, p, t)))
    return len(jax.jit(gradient).lower(params, jnp.zeros((1, 8), jnp.int32)).as_text())


@pytest.mark.slow
def test_a_scanned_program_is_as_long_for_any_depth():
    shallow, deep = (dataclasses.replace(SMALL, layers=n, dtype="float32") for n in (2, 24))
    assert size_of_program(deep) < 1.05 * size_of_program(shallow)
    written = dataclasses.replace(deep, scan=False)
    assert size_of_program(written) > 5 * size_of_program(deep)


def test_later_tokens_change_nothing_before_them(x64):
    params, t = weights(SMALL), tokens()
    changed = np.where(np.arange(7) == 4, (t + 1) % 11, t)
    a, b = (np.asarray(apply(SMALL, params, x)) for x in (t, changed))
    np.testing.assert_allclose(a[:, :4], b[:, :4], atol=1e-13)
    assert np.min(np.max(np.abs(a - b)[:, 4:], -1)) > 1e-6


@pytest.mark.parametrize(
    ("name", "exact"),
    [("60M", 58_073_600), ("130M", 134_105_856), ("350M", 367_969_280), ("1B", 1_339_082_752), ("7B", 6_738_415_616)],
)
def test_published_sizes(name, exact):
    shape = llama(name)
    params = jax.eval_shape(lambda: init(shape, jax.random.key(0)))
    d, layers = shape.width, shape.layers
    assert count(params) == exact
    assert exact == 2 * 32_000 * d + (2 * layers + 1) * d + layers * (4 * d * d + 3 * d * shape.hidden)


def test_the_start_is_gaussian_and_the_precision_the_shapes():
    shape = Decoder(vocabulary=300, width=64, layers=2, heads=4, hidden=160, dtype="bfloat16")
    params = jax.jit(init, static_argnums=0)(shape, jax.random.key(0))
    assert {x.dtype.name for x in jax.tree.leaves(params)} == {"bfloat16"}
    assert jax.eval_shape(lambda p: apply(shape, p, tokens(v=300)), params).dtype == jnp.bfloat16
    for name in ("q", "down"):
        w = np.asarray(params["blocks"][name], np.float32)
        assert abs(w.std() / 0.02 - 1) < 0.03 and abs(w.mean()) < 1e-3
    np.testing.assert_array_equal(params["blocks"]["mlp_norm"], 1)


def test_far_positions_are_told_apart_in_bfloat16():
    shape = Decoder(vocabulary=3, width=8, layers=1, heads=1, hidden=8, std=1.0, dtype="bfloat16")
    params = weights(shape)
    wide = jax.tree.map(lambda x: x.astype(jnp.float32), params)
    t = jnp.zeros((1, 400), jnp.int32).at[0, -3].set(1)
    attention = jax.jit(lambda s, p: trunk(s, p, t, observe=("attention",))[1], static_argnums=0)
    low, high = attention(shape, params), attention(dataclasses.replace(shape, dtype="float32"), wide)
    np.testing.assert_allclose(low["attention"].astype(jnp.float32)[..., -1, :], high["attention"][..., -1, :], atol=0.05)


@pytest.mark.slow
def test_it_serves_as_a_language_model():
    net = decoder(Decoder(vocabulary=11, width=8, layers=1, heads=2, hidden=12))
    params = jax.jit(net.init)(jax.random.key(0))
    t = tokens()

    @jax.jit
    def both(params):
        logits = jax.nn.log_softmax(net.apply(params, t))
        return language.loss(net, params, t, t), -jnp.mean(jnp.take_along_axis(logits, t[..., None], -1))

    np.testing.assert_allclose(*both(params), rtol=1e-5)
    assert np.isfinite(jax.jit(lambda p: language.evaluate(net, p, t, 3).loss)(params))


def test_known_numbers_that_are_no_tokens_are_refused(x64):
    for change, wrong in (({}, 11), ({}, -1), ({"sink_token": True}, 11)):
        shape = dataclasses.replace(SMALL, layers=1, **change)
        params, t = weights(shape), tokens()
        t[1, 3] = wrong
        for call in (decoder(shape).apply, decoder(shape).trunk, lambda p, t, s=shape: parts(s)[0](p, t)):
            with pytest.raises(UsageError, match=f"{wrong} in tokens is not allowed: it is a number from 0 to 10"):
                call(params, t)
    for t in (tokens() * 1.0, tokens() > 3, tokens()[:, :0], np.int64(3)):
        with pytest.raises(UsageError, match="tokens=.* is not allowed"):
            decoder(SMALL).apply(weights(SMALL), t)


@pytest.mark.parametrize("token", [False, True])
def test_traced_numbers_beyond_the_vocabulary_read_the_last_embedding_and_are_found_by_checkify(token, x64):
    shape = dataclasses.replace(SMALL, layers=1, sink_token=token)
    params, last = weights(shape), np.asarray([[3, 10]])
    run = jax.jit(checkify.checkify(lambda t: decoder(shape).apply(params, t), errors=checkify.index_checks))
    fine, expected = run(last)
    wrong, clamped = run(last + [[0, 2]])
    assert fine.get() is None and "index 12 is out of bounds" in wrong.get()
    np.testing.assert_allclose(clamped, expected, rtol=1e-12)


@pytest.mark.parametrize(("position", "words"), [(9, "9 in positions"), (-1, "-1 in positions")])
def test_positions_beyond_the_learned_ones_are_refused(position, words, x64):
    shape = dataclasses.replace(SMALL, position="learned", length=9)
    with pytest.raises(UsageError, match=f"{words} is not allowed: it is a number from 0 to 8 \\(length=9\\)"):
        placed(shape, weights(shape), np.asarray([0, position]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"vocabulary": 20}, "embed has 11 rows, vocabulary=20"),
        ({"layers": 4}, "has 3 rows, layers=4"),
        ({"layers": 2, "scan": False}, "has 3 rows, layers=2"),
        ({"length": 12}, "position has 9 rows, length=12"),
    ],
)
def test_weights_of_another_network_are_refused(change, words, x64):
    shape = dataclasses.replace(SMALL, position="learned", length=9)
    with pytest.raises(UsageError, match=f"these weights are of another network: .*{words}"):
        decoder(dataclasses.replace(shape, **change)).apply(weights(shape), tokens())


def test_numpys_sizes_are_those_of_python():
    """Otherwise a float32 network would have float64 numbers in 64-bit mode, and a program of its own."""
    sizes = {
        "width": np.int64(12),
        "layers": np.asarray(3),
        "epsilon": np.float32(0.5),
        "scan": np.bool_(False),
        "dtype": np.float32,
    }
    shape = dataclasses.replace(SMALL, **sizes)
    assert shape == dataclasses.replace(SMALL, width=12, layers=3, epsilon=0.5, scan=False, dtype="float32")
    assert [type(getattr(shape, name)) for name in sizes] == [int, int, float, bool, str]


WRONG_KINDS = [{"attention": "cosine"}, {"position": "polar"}, {"position": "learned"}]


@pytest.mark.parametrize(
    "wrong",
    [
        *WRONG_KINDS,
        *({"heads": 5}, {"heads": 4}, {"groups": 2}, {"layers": 0}, {"groups": 0}, {"repeats": 0}, {"order": "random"}),
        *({"width": 12.0}, {"layers": True}, {"heads": np.int64(0)}, {"groups": 1.0}, {"vocabulary": "11"}, {"length": -1}),
        *({"std": np.nan}, {"epsilon": -1.0}, {"base": 0.0}, {"base": np.inf}, {"tied": "no"}, {"scan": 1}, {"sink_token": None}),
        *({"dtype": "float31"}, {"dtype": "int32"}, {"dtype": None}, {"dtype": "float8_e4m3fn"}),
    ],
)
def test_wrong_shapes_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        dataclasses.replace(SMALL, **wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"norm": "batch"}, "norm is one of rms, layer"),
        ({"mlp": "mixture"}, "mlp is one of gated, plain"),
        ({"activation": "swish"}, "activation is one of silu, relu, gelu, gelu_tanh"),
        ({"biases": ("gate",), "mlp": "plain"}, "with mlp=plain biases are among q, k, v, o, up, down"),
        ({"biases": "q"}, "biases=q is not allowed"),
        ({"head_size": 5}, "an even number of entries per head"),
        ({"head_size": 0}, "at least 1"),
        ({"rotary": 3}, "an even number of entries per head"),
        ({"rotary": 6}, "rotary=6 is not allowed: a head has 4 entries"),
        ({"rotary": 2, "position": "none"}, "a number of rotary entries needs rotary positions"),
        ({"scaling": Scaling(kind="linear"), "position": "alibi"}, "scaling needs rotary positions"),
        ({"scaling": ("linear", 2.0)}, "scaling is a jaxdyn.nn.rotary.Scaling or None"),
        ({"scaling": Scaling(kind="table", table=(1.0,))}, "its table has 2 divisors"),
        ({"window": 0}, "window is a whole number|window is at least 1"),
        ({"parallel": 1}, "parallel is True or False"),
    ],
)
def test_fields_of_the_families_that_do_not_fit_are_refused(wrong, words):
    with pytest.raises(UsageError, match=words):
        dataclasses.replace(SMALL, **wrong)


def test_heads_may_be_wider_than_the_residual_stream():
    shape = Decoder(vocabulary=5, width=12, layers=1, heads=5, hidden=7, head_size=6)
    assert shape.weights["q"] == (12, 30) and shape.weights["o"] == (30, 12) and shape.entries == 6
    assert dataclasses.replace(shape, biases=["v", "q"]).biases == ("q", "v"), "the order of the matrices"
    assert hash(dataclasses.replace(shape, scaling=Scaling(kind="linear", factor=2)))


def test_wrong_names_are_refused(x64):
    with pytest.raises(UsageError, match="llama='2M'"):
        llama("2M")
    with pytest.raises(UsageError, match=r"llama=\[\] is not allowed: it is one of 9M"):
        llama([])
    with pytest.raises(UsageError, match="cannot observe hidden"):
        decoder(SMALL).apply(weights(SMALL), tokens(), observe=("hidden",))
    assert set(LLAMA) >= {"60M", "7B"}


def test_more_tokens_than_learned_positions_are_refused(x64):
    shape = dataclasses.replace(SMALL, position="learned", length=5)
    with pytest.raises(UsageError, match="learned 5 positions"):
        apply(shape, weights(shape), tokens())
