"""Pieces of optimizers: sizes, trees, blocks, layers, restarts, momentum, memory of states."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import serialization
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import optim
from jaxdyn.errors import UsageError
from jaxdyn.nn import Transformer
from jaxdyn.nn.transformer import apply, init, parts
from jaxdyn.optim.adam import adam_direction
from jaxdyn.optim.blocks import BLOCK, SMALL, Blocks, codes, decode, encode
from jaxdyn.optim.footprint import activations, footprint, footprints, shapes
from jaxdyn.optim.layerwise import Layers, layerwise
from jaxdyn.optim.memory import MemoryLayout, compiled_bytes, estimate, nbytes
from jaxdyn.optim.methods import METHODS, Options
from jaxdyn.optim.momentum import gradient_direction, momentum_direction, sign_direction
from jaxdyn.optim.projection import galore
from jaxdyn.optim.restart import restarting
from jaxdyn.optim.sizes import binade, norm, tree_norm
from jaxdyn.optim.subspace import Subspace
from jaxdyn.optim.trees import check_dtype, check_shape, flat

# Norms of arrays of any magnitude, against NumPy in longer numbers, and to the last bit where squares exist.


NORM = jax.jit(norm, static_argnums=1)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.integers(0, 2**16), st.floats(-36, 37), st.sampled_from([None, 0, 1, (0, 1)]))
def test_norms_have_seven_digits_at_every_magnitude(seed, exponent, axis):
    x = (np.random.default_rng(seed).uniform(0.1, 1, (4, 6)) * 10**exponent).astype(np.float32)
    expected = np.linalg.norm(x.astype(np.float64), axis=axis, keepdims=True) if axis is not None else np.linalg.norm(np.float64(x))
    np.testing.assert_allclose(NORM(x, axis), np.broadcast_to(expected, NORM(x, axis).shape), rtol=1e-6)


@settings(deadline=None, max_examples=20, derandomize=True)
@given(st.integers(0, 2**16), st.floats(-12, 12))
def test_ordinary_norms_are_those_of_jax_to_the_last_bit(seed, exponent):
    x = (np.random.default_rng(seed).normal(size=(8, 8)) * 10**exponent).astype(np.float32)
    np.testing.assert_array_equal(NORM(x, (-2, -1))[0, 0], jax.jit(lambda x: jnp.linalg.norm(x, axis=(-2, -1)))(x))


def test_half_numbers_are_squared_in_float32():
    x = jnp.full((300, 300), 2.0, jnp.float16)
    assert norm(x).dtype == jnp.float32 and float(norm(x)[0, 0]) == 600


def test_zero_empty_and_not_finite_arrays():
    for x, expected in ((np.zeros(3), 0), (np.zeros((0, 3)), 0), (np.array([1, np.nan]), np.nan), (np.array([1, -np.inf]), np.inf)):
        np.testing.assert_array_equal(norm(jnp.asarray(x, jnp.float32)).ravel(), [expected])


def test_the_binade_is_the_power_of_two_below():
    np.testing.assert_array_equal(binade(jnp.array([[0.75, -3.0], [0.0, 0.0], [4.0, jnp.inf]]), 1), [[2], [1], [1]])
    assert jax.grad(lambda x: (x / binade(x))[0])(jnp.array([5.0]))[0] == 0.25


@pytest.mark.parametrize("size", [1e-30, 1e-20, 1.0, 1e20, 1e30])
def test_the_norm_of_a_tree_is_that_of_one_vector(size):
    tree = {"a": jnp.array([3.0, 0.0]) * size, "b": jnp.array([[4.0]], jnp.float32) * size, "none": jnp.zeros(0)}
    assert float(tree_norm(tree)) == pytest.approx(5 * size, rel=1e-6)
    assert float(tree_norm({})) == 0 and float(tree_norm({"a": jnp.zeros(3)})) == 0
    assert not np.isfinite(tree_norm({"a": jnp.array([1.0, jnp.nan])}))


@pytest.mark.parametrize("size", [1e20, 1e30])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_gradient_whose_square_overflows_is_clipped_to_its_norm(size, dtype):
    params, gradient = {"w": jnp.zeros(2, dtype)}, {"w": (jnp.array([3.0, 4.0]) * size).astype(dtype)}
    tx = optim.method("sgd", 1.0, optim.Options(clip=1.0)).tx
    step = tx.update(gradient, tx.init(params), params)[0]["w"]
    np.testing.assert_allclose(np.asarray(step, float), [-0.6, -0.8], rtol=1e-2 if dtype == "bfloat16" else 1e-5)


# Trees and dtypes of optimizers: what passes, and the one sentence for everything else.


def refused(call):
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value).count("\n") == 0 and "not allowed" in str(caught.value)
    return str(caught.value)


def test_dtypes_are_those_of_floating_point_numbers():
    for name in (None, "float32", "bfloat16", jnp.float16, np.dtype("float64")):
        check_dtype("bases", name)
    for name in ("int32", "complex64", "bool", "floot", "8-bit", 7.5, ",", "f4,"):
        refused(lambda name=name: check_dtype("bases", name))


def test_trees_have_floating_leaves_and_the_structure_of_the_state():
    tree = {"a": jnp.ones(2), "b": [np.ones(3, np.float16), None]}
    leaves, treedef, marks = flat(tree, {"a": (1, 2), "b": ["x", None]})
    assert [x.shape for x in leaves] == [(2,), (3,)] and marks == [(1, 2), "x"]
    assert treedef == jax.tree.structure(tree)
    for leaf, kind in (
        (jnp.arange(3), "int32"),
        (jnp.ones(2, jnp.complex64), "complex64"),
        (1.0, "float"),
        (jnp.ones(2, "float8_e4m3fn"), "float8"),
        (jnp.array(True), "bool"),
    ):
        assert f"['b'][0] is of type {kind}" in refused(lambda leaf=leaf: flat({"a": tree["a"], "b": [leaf]}))
    refused(lambda: flat(tree, {"a": 1}))
    check_shape((2, 3), (2, 3))
    assert "(3, 2)" in refused(lambda: check_shape((2, 3), (3, 2)))


# restart.py: an optimizer made anew each epoch is the same as one that is rebuilt by hand.


def gradients(steps):
    return np.random.default_rng(0).normal(size=(steps, 4))


def adam(gs, every, lr=0.1):
    """Adam from its formulas; moments and count go to zero before steps 0, every, 2 every..."""
    x, path = np.zeros(4), []
    m = v = np.zeros(4)
    n = 0
    for i, g in enumerate(gs):
        if every and i % every == 0:
            m, v, n = np.zeros(4), np.zeros(4), 0
        n += 1
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        x = x - lr * m / (1 - 0.9**n) / (np.sqrt(v / (1 - 0.999**n)) + 1e-8)
        path.append(x)
    return np.array(path)


def path(gs, every):
    tx = restarting(optax.adam(0.1), every)

    def step(carry, g):
        x, state = carry
        updates, state = tx.update(g, state, x)
        x = optax.apply_updates(x, updates)
        return (x, state), x

    start = jnp.zeros(4)
    return jax.lax.scan(step, (start, tx.init(start)), jnp.asarray(gs))[1]


@pytest.mark.parametrize("every", [0, 1, 3, 5, 100])
def test_moments_are_forgotten(x64, every):
    gs = gradients(11)
    np.testing.assert_allclose(path(gs, every), adam(gs, every), rtol=1e-12, atol=1e-15)  # steps of one cancel but for rounding


def test_period_may_be_traced(x64):
    gs = gradients(9)
    np.testing.assert_allclose(jax.jit(path)(gs, jnp.int32(4)), adam(gs, 4), rtol=1e-12)
    assert not np.allclose(adam(gs, 4), adam(gs, 0)), "the period matters"


def test_resets_go_on_after_the_last_number_of_the_count():
    tx, g = restarting(optax.trace(0.5), 3), jnp.ones(2)
    state, update, sizes = tx.init(g)._replace(steps=jnp.int32(2**31 - 2)), jax.jit(tx.update), []
    for _ in range(7):
        updates, state = update(g, state, g)
        sizes.append(float(updates[0]))
    assert sizes == [1, 1.5, 1.75, 1, 1.5, 1.75, 1]  # 2^31 - 2 is a multiple of 3


def test_wrong_use_is_refused():
    for every in (-1, 2.0, True, np.int64(-1), None, "2", jnp.float32(1)):
        with pytest.raises(UsageError, match="every="):
            restarting(optax.sgd(0.1), every)
    tx = restarting(optax.adam(0.1), np.int64(2))
    with pytest.raises(UsageError, match="without the parameters"):
        tx.update(jnp.ones(2), tx.init(jnp.ones(2)))


# Directions without Adam against optax's and numpy's: bits, signs, stored dtypes, what is not finite.


def runs(tx, gradients_of_momentum):
    state, out, update = tx.init(gradients_of_momentum[0]), [], jax.jit(tx.update)
    for g in gradients_of_momentum:
        n, state = update(g, state)
        out.append(n)
    return out, state


def gradients_of_momentum(dtype="float32", shape=(4, 3), count=6):
    rng = np.random.default_rng(0)
    return [{"w": jnp.asarray(rng.normal(size=shape), dtype), "b": jnp.asarray(rng.normal(size=3), dtype)} for _ in range(count)]


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_is_optaxs_to_the_bit_and_the_formula(nesterov):
    given = gradients_of_momentum()
    ours, theirs = (runs(tx, given)[0] for tx in (momentum_direction(0.8, nesterov=nesterov), optax.trace(0.8, nesterov)))
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    total = 0.0
    for g, n in zip(given, ours, strict=True):
        g = np.asarray(g["w"], float)
        total = 0.8 * total + g
        np.testing.assert_allclose(n["w"], g + 0.8 * total if nesterov else total, rtol=1e-5, atol=1e-6)


def test_signs_are_numpys_and_what_is_not_finite_has_none():
    g = jnp.asarray([-2.0, -0.0, 0.0, 1e-30, jnp.inf, -jnp.inf, jnp.nan])
    found, _ = sign_direction().update({"w": g}, sign_direction().init({"w": g}))
    np.testing.assert_array_equal(found["w"], [-1, 0, 0, 1, np.nan, np.nan, np.nan])
    plain, _ = gradient_direction().update({"w": g}, gradient_direction().init({"w": g}))
    np.testing.assert_array_equal(plain["w"], g)


def test_sums_of_16_bits_are_calculated_in_float32_and_stored_as_asked():
    given = gradients_of_momentum("float16")
    updates, state = runs(momentum_direction(), given)
    assert {x.dtype for x in jax.tree.leaves((updates, state))} == {jnp.dtype("float16")}
    _, wide = runs(momentum_direction(stored="float32"), given)
    assert wide.trace["w"].dtype == jnp.float32
    np.testing.assert_allclose(state.trace["w"], wide.trace["w"], rtol=0.01, atol=0.01)
    large = gradients_of_momentum(shape=(64, 80), count=10)
    (packed, state), (plain, _) = (runs(momentum_direction(stored=stored), large) for stored in ("8bit", "parameter"))
    assert isinstance(state.trace["w"], Blocks) and state.trace["b"].dtype == jnp.float32
    assert np.linalg.norm(packed[-1]["w"] - plain[-1]["w"]) < 0.02 * np.linalg.norm(plain[-1]["w"])


def test_wrong_numbers_and_trees_are_refused():
    for wrong in ({"beta": 1.0}, {"beta": -0.1}, {"beta": np.nan}, {"beta": True}, {"stored": "4bit"}):
        with pytest.raises(UsageError, match=f"{next(iter(wrong))}=.* is not allowed"):
            momentum_direction(**wrong)
    for tx in (gradient_direction(), sign_direction(), momentum_direction()):
        params = {"w": jnp.ones((2, 3))}
        with pytest.raises(UsageError, match="is of type int32, which is not allowed"):
            tx.init({"w": jnp.ones(2, jnp.int32)})
        with pytest.raises(UsageError, match="a gradient of shape"):
            tx.update({"w": jnp.ones((1, 3))}, tx.init(params), params)
        with pytest.raises(UsageError, match="a tree unlike that of the parameters"):
            tx.update(params, tx.init({"v": params["w"]}), {"v": params["w"]})


# Bytes of training: states against the closed form, activations against a network written out, checkpoints against JAX's own.


SHAPE = Transformer(vocabulary=40, width=16, layers=3, heads=2, hidden=24)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_states_are_those_of_the_closed_form(dtype):
    shape = dataclasses.replace(SHAPE, dtype=dtype)
    for name, layout in {"adam": "full", "galore": "galore"}.items():
        found, counted = (
            footprint(shape, name, Options(rank=4), length=8),
            estimate(shapes(shape), MemoryLayout(method=layout, rank=4)),
        )
        assert (found.weights, found.states) == (counted.weights, counted.states + counted.counters)
        assert found.gradients == found.weights == nbytes(shapes(shape))
    lora, counted = (
        footprint(shape, "lora", Options(rank=4), length=8),
        estimate(shapes(shape), MemoryLayout(method="lora", rank=4)),
    )
    assert lora.weights + lora.states == counted.total


def test_every_method_has_a_row_and_less_than_full_adam():
    rows = footprints(SHAPE, Options(rank=2), length=8)
    assert set(rows) == set(METHODS) and len({row.activations for row in rows.values()}) == 1
    adam = rows["adam"].states
    same = {name for name in METHODS if rows[name].states == adam}  # no parameter is large enough for blocks of 8 bits
    assert same == {"adam", "adamw", "adam_8bit"} and all(rows[name].states < adam for name in METHODS if name not in same)
    assert rows["sgd"].states == rows["sign"].states == 0 and 2 * rows["momentum"].states == adam - 4  # the count
    assert all(row.least < row.total for row in rows.values())
    assert rows["galore"].layerwise == max(4 * 40 * 16, 4 * (4 * 16 * 16 + 3 * 16 * 24 + 2 * 16))


@pytest.mark.slow
def test_activations_are_affine_in_layers_and_linear_in_sequences():
    """By counting all layers at once, without the difference of two depths."""
    plain, saved = activations(SHAPE, 2, 8)
    deeper, deeper_saved = activations(dataclasses.replace(SHAPE, layers=4), 2, 8)
    assert deeper - plain == plain - activations(dataclasses.replace(SHAPE, layers=2), 2, 8)[0] > 0
    assert deeper_saved - saved == 2 * 8 * 16 * 4  # one more input

    def kept(params, tokens):
        def loss(p):
            logits = apply(SHAPE, p, tokens)[:, :-1].astype(jnp.float32)
            return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]))

        mine = {id(x) for x in jax.tree.leaves(params)}
        return [x for x in jax.tree.leaves(jax.vjp(loss, params)[1]) if id(x) not in mine]

    assert nbytes(jax.eval_shape(kept, shapes(SHAPE), jax.ShapeDtypeStruct((2, 8), jnp.int32))) == plain


def test_what_is_not_allowed():
    for wrong in ({"batch": 0}, {"length": 1}):
        with pytest.raises(UsageError, match="is not allowed"):
            footprint(SHAPE, "galore", Options(), **wrong)
    with pytest.raises(UsageError, match="method=full is not allowed"):
        footprint(SHAPE, "full", Options(), length=8)


def test_traced_numbers_and_dropout():
    found = jax.jit(lambda r: jnp.asarray(footprint(dataclasses.replace(SHAPE, residual=r), "adam", Options(), length=8).total))(
        0.5
    )
    assert int(found) == footprint(SHAPE, "adam", Options(), length=8).total
    dropped = dataclasses.replace(SHAPE, dropout=0.1)
    assert activations(dropped, 2, 8)[0] > activations(SHAPE, 2, 8)[0], "what is dropped is kept for the backward pass"


# 8-bit blocks: the table of codes, errors within half a cell, encoding what was decoded.


ENCODE, DECODE = jax.jit(encode, static_argnums=1), jax.jit(decode)


@pytest.mark.parametrize("signed", [True, False])
def test_codes_are_the_published_ones(signed):
    table = codes(signed)
    assert table.shape == (256,) == np.unique(table).shape
    assert table[-1] == 1 and 0 in table
    assert table[0] == (-table[-2] if signed else 0)
    finest = table[(table > 0.1) & (table < 1)]
    cells = 64 if signed else 128
    np.testing.assert_allclose(finest, 0.1 + 0.9 * (np.arange(cells) + 0.5) / cells, rtol=1e-6)
    smallest = table[table > 0].min()
    np.testing.assert_allclose(smallest, 1e-6 * (0.55 if signed else 0.325), rtol=1e-6)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**16), st.sampled_from([SMALL, SMALL + 1, 5000]), st.booleans(), st.floats(-20, 20))
def test_nearest_code_of_every_block(seed, size, signed, exponent):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=size) ** 3 * np.exp(exponent)).astype(np.float32)
    x = x if signed else np.abs(x)
    packed = ENCODE(x, signed)
    assert isinstance(packed, Blocks) and packed.code.dtype == jnp.uint8 and packed.code.shape == (size,)
    assert packed.largest.shape == (-(-size // BLOCK),)
    back, table = np.asarray(DECODE(packed)), codes(signed)
    scale = np.repeat(np.asarray(packed.largest), BLOCK)[:size]
    nearest = np.min(np.abs(x[:, None] / scale[:, None] - table), 1)
    np.testing.assert_allclose(np.abs(back - x) / scale, nearest, atol=1e-6)
    # the table has no -1: a block whose largest entry is negative shrinks by 0.7% each time; all others are at rest
    rest = np.repeat([block[np.argmax(np.abs(block))] > 0 for block in np.split(x, range(BLOCK, size, BLOCK))], BLOCK)[:size]
    again = np.asarray(DECODE(ENCODE(back, signed)))
    np.testing.assert_array_equal(again[rest], back[rest])
    assert rest.all() or signed


@pytest.mark.slow
def test_relative_error_of_entries_near_the_largest_is_half_a_cell():
    x = jnp.linspace(0.1, 1, SMALL)
    assert float(jnp.max(jnp.abs(decode(encode(x)) / x - 1))) <= 0.5 * 0.9 / 64 / 0.1 + 1e-6
    assert float(jnp.max(jnp.abs(decode(encode(x, False)) / x - 1))) <= 0.5 * 0.9 / 128 / 0.1 + 1e-6


def test_small_arrays_stay_and_zeros_are_zeros():
    x = jnp.ones(SMALL - 1, jnp.bfloat16)
    assert encode(x).dtype == jnp.float32
    np.testing.assert_array_equal(decode(encode(jnp.zeros((64, 64)))), np.zeros((64, 64)))
    assert decode(x) is x


@settings(deadline=None, max_examples=20, derandomize=True)
@given(st.sampled_from([np.nan, np.inf, -np.inf]), st.integers(0, SMALL + 99), st.booleans())
def test_a_number_that_is_not_finite_makes_its_block_nan_and_no_other(bad, place, signed):
    x = np.abs(np.random.default_rng(0).normal(size=SMALL + 100)).astype(np.float32)
    good = np.asarray(DECODE(ENCODE(x, signed)))
    x[place] = bad
    back = np.asarray(DECODE(ENCODE(x, signed)))
    own = np.arange(x.size) // BLOCK == place // BLOCK
    assert np.isnan(back[own]).all()
    np.testing.assert_array_equal(back[~own], good[~own])


def test_states_pass_through_transformations():
    x = jnp.ones((3, SMALL))
    packed = jax.jit(jax.vmap(encode))(x)
    np.testing.assert_array_equal(jax.vmap(decode)(packed), x)
    assert jax.eval_shape(encode, x).code.size == x.size


def test_blocks_are_stored_in_files_of_runs():
    blocks = encode(jnp.linspace(-1, 1, SMALL).reshape(64, -1))
    empty = encode(jnp.zeros((64, SMALL // 64)))
    read = serialization.from_bytes({"mu": empty}, serialization.to_bytes({"mu": blocks}))["mu"]
    assert isinstance(read, Blocks) and (read.shape, read.signed) == (blocks.shape, blocks.signed)
    np.testing.assert_array_equal(decode(read), decode(blocks))


# Updates during backpropagation against updates after it: the same steps, with less memory.


THREE_LAYERS = Transformer(vocabulary=11, width=8, layers=3, heads=2, hidden=10, std=0.4, dtype="float64")
TXS = {
    "adam": optax.adam(0.01),
    "galore": optax.chain(galore(adam_direction(), Subspace(rank=3), every=2), optax.scale(-0.05)),
}


def network(shape):
    enter, block, read = parts(shape)

    def leave(rest, x, tokens):
        logits = read(rest, x)[:, :-1]
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]))

    return Layers(enter, block, leave)


def loss(shape, params, tokens):
    logits = apply(shape, params, tokens)[:, :-1]
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]))


def apart(params):
    return {n: x for n, x in params.items() if n != "blocks"}, params["blocks"]


def at_once(shape, tx):
    def step(params, state, tokens):
        value, gradient = jax.value_and_grad(lambda p: loss(shape, p, tokens))(params)
        updates, state = tx.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    return step


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tied"),
    [
        pytest.param("adam", False, marks=pytest.mark.slow),
        ("galore", True),
        pytest.param("adam", True, marks=pytest.mark.slow),
        pytest.param("galore", False, marks=pytest.mark.slow),
    ],
)
def test_the_steps_are_those_of_an_update_after_backpropagation(name, tied, x64):
    shape, tx = dataclasses.replace(THREE_LAYERS, tied=tied), TXS[name]
    params = init(shape, jax.random.key(0))
    start, step = layerwise(network(shape), tx)
    state, all_at_once, step = start(*apart(params)), jax.jit(at_once(shape, tx)), jax.jit(step)
    opt = tx.init(params)
    for i in range(5):
        tokens = jnp.asarray(np.random.default_rng(i).integers(0, 11, (2, 7)))
        params, opt, expected = all_at_once(params, opt, tokens)
        state, found = step(state, tokens)
        assert float(found) == pytest.approx(float(expected), abs=1e-10)
    for ours, theirs in zip(jax.tree.leaves((state.rest, state.stack)), jax.tree.leaves(apart(params)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_a_stack_has_layers_and_equally_many():
    start, _ = layerwise(network(THREE_LAYERS), optax.sgd(0.1))
    for stack in ({}, {"w": jnp.ones((0, 2))}, {"w": jnp.ones(())}, {"w": jnp.ones((2, 3)), "v": jnp.ones((3, 3))}):
        with pytest.raises(UsageError, match="stack of layers"):
            start({}, stack)


@pytest.mark.slow
def test_the_gradients_of_most_layers_need_no_memory():
    shape = dataclasses.replace(THREE_LAYERS, vocabulary=32, width=64, heads=4, hidden=128, layers=16, dtype="float32")
    tokens, tx = jax.ShapeDtypeStruct((1, 8), jnp.int32), optax.sgd(0.1)
    params = jax.eval_shape(lambda: init(shape, jax.random.key(0)))
    start, step = layerwise(network(shape), tx)
    ours = compiled_bytes(step, jax.eval_shape(start, *apart(params)), tokens, donated=(0,))
    theirs = compiled_bytes(at_once(shape, tx), params, jax.eval_shape(tx.init, params), tokens, donated=(0, 1))
    assert theirs["peak"] - ours["peak"] > 0.8 * nbytes(params["blocks"])
