"""Pieces of a transformer: norms, activations, positions, choices, presets, tokens, starts."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import Code
from jaxdyn.errors import UsageError
from jaxdyn.nn import ACTIVATIONS, LLAMA, Transformer, attention, choices, count, encoder_lm, gpt2, llama, network, tree_network
from jaxdyn.nn.activations import cross_entropies, reduce_blocks
from jaxdyn.nn.norms import layer_norm, rms_norm
from jaxdyn.nn.pointwise import activated
from jaxdyn.nn.rotary import Scaling, slowed
from jaxdyn.nn.tokens import checked
from jaxdyn.nn.transformer import apply, trunk
from tests.nn import plain_transformer
from tests.nn.drawn import weights

# The norms against NumPy, and in low precision.


RNG = np.random.default_rng(0)


def test_numpy(x64):
    x, gain, bias = RNG.normal(size=(3, 5)), RNG.normal(size=5), RNG.normal(size=5)
    centred = x - x.mean(-1, keepdims=True)
    np.testing.assert_allclose(
        layer_norm(x, gain, bias, 1e-5), centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gain + bias, rtol=1e-12
    )
    np.testing.assert_allclose(rms_norm(x, gain, 1e-5), x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gain, rtol=1e-12)


def test_sums_run_in_float32():
    x = jnp.full((1, 4096), 1.0, jnp.bfloat16).at[0, ::2].set(1.25)
    one, zero = jnp.ones(4096, jnp.bfloat16), jnp.zeros(4096, jnp.bfloat16)
    out = layer_norm(x, one, zero, 0.0)
    assert out.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(out, np.float32)[0, :2], [1, -1], rtol=1e-2)


# Activations by name: NumPy's formulas, switches, functions of one's own.


X = np.linspace(-3, 3, 13)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_is_its_formula(name, x64):
    np.testing.assert_allclose(activated(X, name), plain_transformer.ACTIVATIONS[name](X), rtol=1e-12, atol=1e-15)


def test_a_switch_and_a_function_of_ones_own(x64):
    kinds = ("relu", "tests.nn.test_transformer:cubic")
    both = jax.jit(jax.vmap(lambda i: activated(X, Code(i, kinds))))(np.arange(2))
    np.testing.assert_allclose(both, [np.maximum(X, 0), X**3], rtol=1e-12)
    with pytest.raises(UsageError, match="test_transformer:quartic' is not allowed: .* has no function 'quartic'"):
        activated(X, "tests.nn.test_transformer:quartic")


# What happens inside the blocks, against the network itself and a plain attention in NumPy.


SHAPE = Transformer(vocabulary=11, width=12, layers=2, heads=6, groups=3, hidden=10, std=0.5)
OTHERS = {
    "llama": {},
    "parallel": {"norm": "layer", "mlp": "plain", "activation": "gelu", "parallel": True, "biases": ("q", "up", "down")},
    "repeated": {"repeats": 2, "order": "all"},
    "sink token": {"sink_token": True},
    "small residual": {"residual": 0.3},
    "small residual, parallel": {"residual": 0.3, "parallel": True},
    "written out": {"scan": False},
}
TOKENS = jnp.asarray(np.random.default_rng(0).integers(0, 11, (2, 7)))


@pytest.mark.thinned
@pytest.mark.parametrize("name", OTHERS)
def test_the_network_is_the_same(name):
    shape = dataclasses.replace(SHAPE, **OTHERS[name])
    params = weights(shape)
    x, seen = jax.jit(lambda p: reduce_blocks(shape, p, TOKENS, lambda block: block._replace(weights={})))(params)
    expected, observed = jax.jit(lambda p: trunk(shape, p, TOKENS, observe=("attention", "inputs")))(params)
    np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(seen.attention, observed["attention"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(seen.before, observed["inputs"][:-1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(seen.before[1:], seen.after[:-1], rtol=1e-6)
    np.testing.assert_allclose(seen.before + seen.written + seen.added, seen.after, rtol=1e-5, atol=1e-6)


def test_values_are_mixed_by_the_weights():
    params = weights(SHAPE)
    _, seen = jax.jit(lambda p: reduce_blocks(SHAPE, p, TOKENS, lambda block: block))(params)
    value = np.repeat(np.asarray(seen.value), 2, axis=3)
    mixed = np.einsum("lbhnm,lbmhe->lbnhe", seen.attention, value)
    np.testing.assert_allclose(seen.mixed, mixed, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        np.asarray(seen.units) @ np.asarray(params["blocks"]["down"])[:, None], seen.added, rtol=1e-4, atol=1e-6
    )


def test_only_what_is_asked_for_is_stacked():
    program = jax.jit(lambda p: reduce_blocks(SHAPE, p, TOKENS, lambda block: jnp.mean(block.attention[..., 0]))).lower(
        weights(SHAPE)
    )
    assert "tensor<2x2x6x7x7xf32>" not in program.as_text()  # no layer's attention is held after the layer


@pytest.mark.thinned
@pytest.mark.parametrize("count", [1, 6, 64, 65, 130])
def test_cross_entropy_in_blocks(count):
    params = weights(SHAPE)
    tokens = jnp.asarray(np.random.default_rng(1).integers(0, 11, count + 1))
    x = trunk(SHAPE, params, tokens[None, :-1])[0]
    expected = -jax.nn.log_softmax(apply(SHAPE, params, tokens[None, :-1])[0])[jnp.arange(count), tokens[1:]]
    np.testing.assert_allclose(cross_entropies(SHAPE, params, x, tokens[1:]), expected, rtol=1e-5, atol=1e-6)


# Rescaled rotary rates: fast pairs stay, slow ones are slower, and what is no scaling is refused.


RATES = 500_000.0 ** (-np.arange(0, 64, 2) / 64)


def test_llama3_keeps_fast_pairs_and_slows_slow_ones(x64):
    scaling = Scaling(kind="llama3", factor=8.0, low=1.0, high=4.0, length=8192)
    slow, wave = np.asarray(slowed(RATES, scaling)), 2 * np.pi / RATES
    ratio = RATES / slow
    np.testing.assert_allclose(ratio[wave < 8192 / 4], 1, rtol=1e-12)
    np.testing.assert_allclose(ratio[wave > 8192], 8, rtol=1e-12)
    between = ratio[(wave > 8192 / 4) & (wave < 8192)]
    assert between.size and np.all((between > 1) & (between < 8)) and np.all(np.diff(ratio) >= -1e-12)


def test_linear_scaling_stretches_positions(x64):
    a = attention.angles(np.arange(5) * 3, 8, scaling=Scaling(kind="linear", factor=3.0), dtype="float64")
    b = attention.angles(np.arange(5), 8, dtype="float64")
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    assert slowed(RATES, None) is RATES


def test_a_table_has_a_divisor_for_every_pair(x64):
    np.testing.assert_allclose(slowed(np.ones(2), Scaling(kind="table", table=(2, 4))), [0.5, 0.25])
    with pytest.raises(UsageError, match="it has 2 divisors for 32 pairs"):
        slowed(RATES, Scaling(kind="table", table=(2, 4)))


@pytest.mark.parametrize(
    "wrong",
    [
        *({"kind": "yarn"}, {"kind": "linear", "factor": 0.0}, {"kind": "llama3", "low": 4.0}, {"kind": "llama3", "length": 0}),
        *({"kind": "table"}, {"kind": "linear", "table": (1.0,)}, {"kind": "table", "table": (0.0,)}),
    ],
)
def test_wrong_scalings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Scaling(**wrong)


# Kinds: one name, a switch, a function of one's own; anything else is a sentence.


FORMS = {"one": lambda x: x + 1, "two": lambda x: x + 2}


def test_the_chosen_form_is_applied():
    assert choices.applied("field", "two", FORMS, 1) == 3
    assert choices.applied("field", Code(0, ("two", "one")), FORMS, 1) == 3
    assert choices.applied("field", Code(0, ("two",)), FORMS, 1) == 3
    assert choices.applied("field", "math:sqrt", FORMS, 4.0) == 2
    assert choices.names("one") == ("one",) and choices.names(Code(0, ("two", "one"))) == ("two", "one")


def test_a_kind_is_asked_of_names_and_switches():
    switch = Code(1, ("one", "two"))
    assert choices.is_kind(switch, "two") and not choices.is_kind(switch, "one") and not choices.is_kind(switch, "three")
    assert choices.is_kind("one", "one") and not choices.is_kind("one", "two")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("three", "field='three' is not allowed: it is one of one, two, or a function of your own as 'module:function'"),
        (None, "field=None is not allowed"),
        (3, "field=3 is not allowed"),
        (Code(0, ("one", "three")), "field='three' is not allowed"),
        ("math:cube", "field='math:cube' is not allowed: math has no function 'cube'"),
        ("math:pi", "math has no function 'pi'"),
        ("no.such:f", "'no.such' cannot be imported"),
        ("math:", "math has no function ''"),
        ("..:x", "cannot be imported"),
    ],
)
def test_what_is_no_kind_is_refused(wrong, words):
    with pytest.raises(UsageError) as error:
        choices.check("field", wrong, FORMS)
    assert words in str(error.value)


def test_a_function_of_ones_own_keeps_the_shape():
    with pytest.raises(UsageError, match=r"'numpy:sum' is not allowed: of the shape \(2,\) it makes \(\), and the shape stays"):
        choices.applied("field", "numpy:sum", FORMS, np.ones(2))
    with pytest.raises(UsageError, match="there is no file nowhere.py"):
        choices.check("field", "nowhere.py:f", FORMS)


# Presets: the published sizes, and any field may be overridden.


def test_presets_take_any_field_and_keep_the_rest():
    assert gpt2(50, width=24, layers=2, heads=2, dropout=0.0, activation="relu").activation == "relu"
    assert gpt2(50, width=24, layers=2, heads=2).hidden == 96 and gpt2(50, hidden=7).hidden == 7
    assert encoder_lm(30).scale == 200**0.5 and encoder_lm(30, width=16, scale=1.0).scale == 1.0
    assert not encoder_lm(30, copies=False).copies and encoder_lm(30).causal
    assert tree_network(6, 3).hidden == 24 and tree_network(6, 3, hidden=5).hidden == 5 and tree_network(6, 3).outputs == 3


def test_sizes_are_whole_numbers_of_any_library():
    assert encoder_lm(np.int64(30), width=np.int64(16)) == encoder_lm(30, width=16)  # the scale, too, is Python's number
    assert gpt2(50, width=np.int32(24), heads=2) == gpt2(50, width=24, heads=2)
    assert tree_network(np.int64(6), np.int64(3)) == tree_network(6, 3)
    for width in ("16", 16.0, True, None, -4):
        for call in (lambda width: encoder_lm(30, width=width), lambda width: gpt2(50, width=width, heads=1)):
            with pytest.raises(UsageError, match=f"width={width} is not allowed: width is"):
                call(width)


def size(shape):
    return count(jax.eval_shape(network(shape).init, jax.random.key(0)))


def test_numbers_of_weights_are_those_counted_by_hand():
    assert size(gpt2(50_257)) == 124_439_808
    v, d = 28_782, 200
    attention, mlp, norms = d * 3 * d + 3 * d + d * d + d, d * d + d + d * d + d, 2 * 2 * d
    assert size(encoder_lm(v)) == v * d + attention + mlp + norms + d * v + v == 11_783_582
    assert size(encoder_lm(v, layers=5)) == 2 * v * d + v + 5 * (attention + mlp + norms)
    v, d, m, classes = 20, 16, 80, 5
    layer = d * 3 * d + d * m + m + m * d + d + 2 * 2 * d
    assert size(tree_network(v, classes, width=d)) == v * d + 3 * layer + d * classes + classes


@pytest.mark.parametrize(
    ("name", "exact"),
    [("60M", 58_073_600), ("130M", 134_105_856), ("350M", 367_969_280), ("1B", 1_339_082_752), ("7B", 6_738_415_616)],
)
def test_published_sizes(name, exact):
    shape = llama(name)
    d, layers = shape.width, shape.layers
    assert size(shape) == exact
    assert exact == 2 * 32_000 * d + (2 * layers + 1) * d + layers * (4 * d * d + 3 * d * shape.hidden)


def test_wrong_names_are_refused():
    with pytest.raises(UsageError, match="llama='2M'"):
        llama("2M")
    with pytest.raises(UsageError, match=r"llama=\[\] is not allowed: it is one of 9M"):
        llama([])
    assert set(LLAMA) >= {"60M", "7B"}


# Token numbers: what is refused, and how.


DTYPES = ("int8", "uint8", "int16", "int32", "uint32", "int64")
SOME = settings(deadline=None, max_examples=60, derandomize=True)


@SOME
@given(st.lists(st.integers(-3, 130), min_size=1, max_size=5), st.sampled_from(DTYPES), st.booleans())
def test_numbers_of_any_dtype_are_those_of_the_list_or_refused(numbers, dtype, ours):
    """NumPy's array, JAX's, and the list itself: the same answer, and 130, which no int8 holds, can be written next to them."""
    info = np.iinfo(dtype)
    numbers = [min(max(n, info.min), info.max) for n in numbers]
    given_ = np.asarray(numbers, dtype)
    given_ = jnp.asarray(given_, "int32" if dtype == "int64" else dtype) if ours else given_
    outside = [n for n in numbers if not 0 <= n < 128]
    for tokens in (given_, numbers):
        if outside:
            with pytest.raises(UsageError) as error:
                checked(tokens, 128)
            assert str(error.value) == f"{outside[0]} in tokens is not allowed: it is a number from 0 to 127 (vocabulary=128)"
        else:
            out = checked(tokens, 128)
            np.testing.assert_array_equal(out, numbers)
            assert out.dtype == np.int32


@pytest.mark.parametrize(
    ("tokens", "more", "words"),
    [
        ([1.0], {}, r"tokens=float64\[1\] is not allowed: it is an array of whole numbers"),
        ([True], {}, r"tokens=bool\[1\] is not allowed: it is an array of whole numbers"),
        (["a"], {}, r"tokens=<U1\[1\] is not allowed: it is an array of whole numbers"),
        (None, {}, "tokens=None is not allowed: it is an array of whole numbers"),
        ([[1], [1, 2]], {}, r"tokens=\[\[1\], \[1, 2\]\] is not allowed: its lists have equal lengths"),
        (
            np.ma.masked_equal([0, 3], 0),
            {},
            r"tokens=int64\[2\] is not allowed with a mask: there is no padding, all its numbers are read",
        ),
        (3, {}, "tokens=3 is not allowed: it has one axis or more"),
        ([[3]], {"axes": 1}, r"tokens=int64\[1,1\] is not allowed: it has one axis, and jax.vmap adds others"),
        ([3], {"axes": 0, "name": "token"}, r"token=int64\[1\] is not allowed: it has no axis, and jax.vmap adds others"),
        ([3], {"least": 2}, r"tokens=int64\[1\] is not allowed: its last axis has a length of 2 or more"),
    ],
)
def test_what_is_no_array_of_token_numbers_is_refused_in_one_sentence(tokens, more, words):
    with pytest.raises(UsageError, match=f"^{words}$"):
        checked(tokens, 9, **more)


def test_dtypes_and_shapes_of_traced_numbers_are_checked_too():
    seen = []

    @jax.jit
    def trace(tokens, floats):
        seen.append(checked(tokens, 4).dtype)
        for wrong, more in ((floats, {}), (tokens, {"axes": 0}), (tokens, {"least": 3})):
            with pytest.raises(UsageError, match="not allowed"):
                checked(wrong, 4, **more)
        return tokens

    trace(jnp.asarray([9, 9], jnp.uint8), jnp.zeros(2))
    assert seen == [np.int32]


# How weights are drawn: bounds and standard deviations of every group of parameters, as the rules are documented.


WIDTH, HIDDEN = 64, 144


@pytest.fixture(scope="module", params=["normal", "encoder", "gpt2", "fan_in"])
def drawn(request):
    """The rule, and weights of two keys; the layers of "encoder" are copies, as in its preset."""
    s = Transformer(
        vocabulary=200,
        width=WIDTH,
        hidden=HIDDEN,
        layers=2,
        heads=2,
        position="learned",
        length=50,
        norm="layer",
        mlp="plain",
        biases=("q", "k", "v", "o", "up", "down", "head"),
        start=request.param,
        copies=request.param == "encoder",
    )
    init = jax.jit(network(s).init)
    return request.param, *(jax.tree.map(np.asarray, init(jax.random.key(i))) for i in (3, 4))


def check_uniform(a, bound):
    """Inside the bound, near it, mean 0 and variance bound^2 / 3, each within 5 standard errors."""
    assert np.abs(a).max() <= bound and np.abs(a).max() > bound * (1 - 10 / a.size)
    assert abs(a.mean()) < 5 * bound / np.sqrt(3 * a.size)
    assert abs(np.mean(a**2) * 3 / bound**2 - 1) < 5 * np.sqrt(0.8 / a.size)


def check_normal(a, deviation):
    assert abs(a.mean()) < 5 * deviation / np.sqrt(a.size)
    assert abs(a.std() / deviation - 1) < 5 / np.sqrt(2 * a.size)
    assert np.mean(np.abs(a) > 2 * deviation) == pytest.approx(0.0455, abs=5 * np.sqrt(0.0455 / a.size))


MATRICES, BIASES = ("q", "k", "v", "o", "up", "down"), ("q_bias", "k_bias", "v_bias", "o_bias", "up_bias", "down_bias", "head_bias")


@pytest.mark.thinned
def test_every_group_follows_its_rule(drawn):
    start, params, _ = drawn
    parts = {name: a for name, a in params.items() if name != "blocks"} | params["blocks"]
    zero, normal, uniform = set(), {}, {}
    wide, narrow = WIDTH**-0.5, HIDDEN**-0.5
    if start in ("gpt2", "normal"):
        zero = set(BIASES)
        normal = dict.fromkeys((*MATRICES, "embed", "position", "head"), 0.02)
        normal |= dict.fromkeys(("o", "down"), 0.01) if start == "gpt2" else {}
    else:
        uniform = {"up": wide, "up_bias": wide, "o": wide, "down": narrow, "down_bias": narrow}
    if start == "encoder":
        zero = {"q_bias", "k_bias", "v_bias", "o_bias", "head_bias"}
        uniform |= {"embed": 0.1, "position": 0.1, "head": 0.1} | dict.fromkeys("qkv", (6 / (3 * WIDTH + WIDTH)) ** 0.5)
    if start == "fan_in":
        normal = {"embed": 1.0, "position": 1.0}
        uniform |= dict.fromkeys(("q", "k", "v", "q_bias", "k_bias", "v_bias", "o_bias", "head", "head_bias"), wide)
    norms = {name for name in parts if "norm" in name}
    assert set(parts) - norms == zero | set(normal) | set(uniform)
    for name in zero:
        assert np.all(parts[name] == 0), name
    for name, bound in uniform.items():
        check_uniform(parts[name], bound)
    for name, deviation in normal.items():
        check_normal(parts[name], deviation)
    assert norms == {f"{n}{b}" for n in ("norm", "attention_norm", "mlp_norm") for b in ("", "_bias")}
    for name in norms:
        assert np.all(parts[name] == (not name.endswith("_bias"))), name


@pytest.mark.thinned
def test_layers_start_equal_only_as_copies(drawn):
    start, params, _ = drawn
    for name in MATRICES:
        first, second = params["blocks"][name]
        assert np.array_equal(first, second) == (start == "encoder"), name


def test_groups_are_independent_draws_of_the_key(drawn):
    draws = [params["blocks"][name][0] for params in drawn[1:] for name in MATRICES]
    draws += [params["embed"] for params in drawn[1:]]
    draws += [params["position"] for params in drawn[1:]] + [params["head"] for params in drawn[1:]]
    table = np.corrcoef([np.ravel(a[:16, :16]) for a in draws])
    assert np.abs(table - np.eye(len(draws))).max() < 5 / 16


def test_a_published_start_may_have_another_spread():
    params = jax.jit(network(gpt2(300, width=64, heads=2, layers=2, length=50, std=0.05)).init)(jax.random.key(0))
    check_normal(np.asarray(params["blocks"]["up"]), 0.05)
    check_normal(np.asarray(params["blocks"]["down"]), 0.025)


@pytest.mark.parametrize("width", [8, 24])
def test_an_orthogonal_start_has_orthonormal_rows_or_columns(width):
    shape = Transformer(vocabulary=12, width=width, hidden=16, layers=2, heads=2, sink_token=True, start="orthogonal")
    params = jax.tree.map(np.asarray, jax.jit(network(shape).init)(jax.random.key(3)))
    matrices = [w for name, w in params["blocks"].items() if "norm" not in name]
    matrices += [params["embed"][None] / np.sqrt(width), params["head"][None]]
    for w in matrices:
        few = w if w.shape[1] <= w.shape[2] else w.swapaxes(1, 2)
        np.testing.assert_allclose(
            few @ few.swapaxes(1, 2), np.broadcast_to(np.eye(few.shape[1]), (len(w), few.shape[1], few.shape[1])), atol=1e-5
        )
    assert np.linalg.norm(params["sink_token"]) == pytest.approx(np.sqrt(width), rel=1e-5)
    assert not np.array_equal(*params["blocks"]["q"])
