"""The quantiser, its gradients and averages; the autoencoder through it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.nn import vq

SHAPE = vq.Chunks(vocabulary=5, length=4, rate=2, codes=6, width=8, hidden=16)


init = jax.jit(vq.init, static_argnums=0)  # as one program each: by itself every operation would be compiled
encode, decode = jax.jit(vq.encode, static_argnums=0), jax.jit(vq.decode, static_argnums=0)


def drawn(key: int, *size: int) -> jax.Array:
    return jax.random.normal(jax.random.key(key), size)


def test_the_nearest_vector_is_that_of_all_differences():
    x, book = drawn(0, 3, 7, 4), drawn(1, 9, 4)
    away = np.linalg.norm(np.asarray(x)[..., None, :] - np.asarray(book), axis=-1)
    np.testing.assert_array_equal(vq.nearest(x, book), away.argmin(-1))
    np.testing.assert_array_equal(vq.nearest(book, book), np.arange(9))


def test_of_equal_vectors_the_first_is_chosen():
    np.testing.assert_array_equal(vq.nearest(jnp.zeros((1, 2)), jnp.ones((3, 2))), [0])


def test_gradients_pass_and_stop_where_they_should():
    x, e = drawn(0, 5, 3), drawn(1, 5, 3)
    np.testing.assert_allclose(vq.straight(x, e), e, rtol=1e-6)
    to_x, to_e = jax.grad(lambda x, e: jnp.sum(vq.straight(x, e) ** 2), argnums=(0, 1))(x, e)
    np.testing.assert_allclose(to_x, 2 * e, rtol=1e-5)
    np.testing.assert_array_equal(to_e, 0)
    book, pull = (jax.grad(lambda x, e, i=i: jnp.sum(vq.penalties(x, e)[i]), argnums=(0, 1))(x, e) for i in range(2))
    np.testing.assert_array_equal(book[0], 0)
    np.testing.assert_allclose(book[1], 2 * (e - x), rtol=1e-5)
    np.testing.assert_allclose(pull[0], 2 * (x - e), rtol=1e-5)
    np.testing.assert_array_equal(pull[1], 0)


@pytest.mark.slow
def test_perplexity_counts_the_codes_in_use():
    assert float(vq.perplexity(jnp.array([0, 1, 2, 3]), 8)) == pytest.approx(4, rel=1e-6)
    assert float(vq.perplexity(jnp.array([5, 5, 5]), 8)) == pytest.approx(1, rel=1e-6)


def test_averages_tend_to_the_means_of_what_is_assigned():
    x, book = drawn(0, 12, 3), drawn(1, 4, 3)
    codes = jnp.array([0] * 4 + [1] * 8)
    state, averaged = vq.started(book), jax.jit(vq.averaged)
    for _ in range(200):
        state, now = averaged(state, x, codes, 0.9)
    np.testing.assert_allclose(now[0], x[:4].mean(0), atol=1e-5)
    np.testing.assert_allclose(now[1], x[4:].mean(0), atol=1e-5)
    np.testing.assert_allclose(now[2:], book[2:], rtol=1e-4)


def test_a_code_that_nothing_was_assigned_to_for_long_keeps_its_vector():
    x, book = drawn(0, 4, 3), drawn(1, 2, 3)
    update = lambda _, s: vq.averaged(s, x, jnp.zeros(4, jnp.int32), 0.9)[0]  # noqa: E731
    state = jax.jit(lambda s: jax.lax.fori_loop(0, 3000, update, s))(vq.started(book))  # .9^3000 is 0 in float32
    np.testing.assert_allclose((state.total / state.size[:, None])[1], book[1], rtol=1e-3)
    after = jax.jit(lambda s: vq.averaged(s, x, jnp.ones(4, jnp.int32), 0.9)[1])(state)
    np.testing.assert_allclose(after[1], x.mean(0), rtol=1e-5)


@pytest.mark.slow
def test_shapes_and_what_a_code_sees():
    params = init(SHAPE, jax.random.key(0))
    chunk = jnp.array([[0, 1, 2, 3], [4, 4, 2, 3]])
    x = encode(SHAPE, params, chunk)
    assert x.shape == (2, 2, 8)
    np.testing.assert_allclose(x[0, 1], x[1, 1], rtol=1e-6)  # the second code sees its own tokens alone
    assert float(jnp.abs(x[0, 0] - x[1, 0]).max()) > 1e-3
    logits = decode(SHAPE, params, x)
    assert logits.shape == (2, 4, 5)
    np.testing.assert_allclose(decode(SHAPE, params, x, jnp.zeros((2, 3), jnp.int32)), logits, rtol=1e-6)  # no prompt yet
    moved = params._replace(prompt=params.prompt.at[1].set(1.0))
    assert float(jnp.abs(decode(SHAPE, moved, x, jnp.ones((2, 3), jnp.int32)) - logits).max()) > 1e-3
    np.testing.assert_allclose(vq.spread(SHAPE, params, chunk[:1].repeat(6, 0)).codebook, x[:1, 0].repeat(6, 0), rtol=1e-6)


@pytest.mark.slow
def test_training_restores_few_chunks():
    shape = dataclasses.replace(SHAPE, length=2, rate=2)
    chunk = jnp.array([[0, 1], [1, 2], [3, 3], [4, 0]])
    params = vq.spread(shape, init(shape, jax.random.key(0)), chunk[jnp.arange(6) % 4])
    tx = optax.adam(1e-2)
    opt = tx.init(params)

    @jax.jit
    def step(params, opt):
        value, gradient = jax.value_and_grad(lambda p: vq.loss(shape, p, chunk))(params)
        updates, opt = tx.update(gradient, opt, params)
        return optax.apply_updates(params, updates), opt, value

    _, _, first = step(params, opt)
    for _ in range(150):
        params, opt, _ = step(params, opt)
    e = params.codebook[vq.nearest(encode(shape, params, chunk), params.codebook)]
    np.testing.assert_array_equal(jnp.argmax(decode(shape, params, e), -1), chunk)
    assert float(step(params, opt)[2]) < 0.2 * float(first)


def test_a_codebook_that_moves_as_averages_has_no_gradient():
    params = init(SHAPE, jax.random.key(0))
    chunk = jnp.array([[0, 1, 2, 3]])
    averages, descent = (jax.jit(jax.grad(lambda p, m=m: vq.loss(SHAPE, p, chunk, **m)))(params) for m in ({"moving": 0.0}, {}))
    assert float(jnp.abs(averages.codebook).max()) == 0 < float(jnp.abs(descent.codebook).max())


def test_numbers_that_are_no_tokens_or_codes_are_refused():
    params, chunk = init(SHAPE, jax.random.key(0)), np.zeros((1, 4), int)
    book = vq.started(params.codebook)
    for call, words in (
        (lambda: vq.encode(SHAPE, params, chunk + 5), "5 in chunk is not allowed: it is a number from 0 to 4"),
        (lambda: vq.loss(SHAPE, params, chunk - 1), "-1 in chunk is not allowed"),
        (lambda: vq.loss(SHAPE, params, chunk * 1.0), "chunk=.* is not allowed: it is an array of whole numbers"),
        (lambda: vq.loss(SHAPE, params, chunk[:, :2]), r"chunk=.*\[1,2\] is not allowed: its last axis has length=4 tokens"),
        (lambda: vq.loss(SHAPE, params, chunk, chunk + 9), "9 in prompt is not allowed"),
        (lambda: vq.loss(SHAPE, params, chunk, chunk[:, :0]), "prompt=.* is not allowed: its last axis has a length of 1 or more"),
        (lambda: vq.decode(SHAPE, params, jnp.zeros((1, 3, 8))), "a chunk has 2 codes of 8 numbers"),
        (lambda: vq.spread(SHAPE, params, chunk), "there is one for each of 6 codes"),
        (lambda: vq.perplexity(chunk + 4, 4), r"4 in codes is not allowed: it is a number from 0 to 3 \(count=4\)"),
        (lambda: vq.perplexity(chunk - 1, 4), "-1 in codes is not allowed"),
        (lambda: vq.perplexity(chunk[:0], 4), "codes are not allowed to be empty"),
        (lambda: vq.perplexity(chunk, True), "count=True is not allowed"),
        (lambda: vq.averaged(book, jnp.zeros((1, 8)), np.asarray([6]), 0.9), "6 in codes is not allowed"),
        (lambda: vq.averaged(book, jnp.zeros((2, 8)), np.asarray([1]), 0.9), r"x=float32\[2,8\] is not allowed"),
        (lambda: vq.averaged(book, jnp.zeros((1, 8)), np.asarray([1]), np.float64(2)), "decay=2.0 is not allowed"),
    ):
        with pytest.raises(UsageError, match=words):
            call()


def test_a_traced_code_outside_is_nan_or_given_to_none():
    used = jax.jit(lambda c: vq.perplexity(c, 4))
    assert np.isnan(used(jnp.asarray([0, 4]))) and np.isnan(used(jnp.asarray([0, -1]))) and float(used(jnp.asarray([0, 1]))) == 2
    sizes = jax.jit(lambda c: vq.averaged(vq.started(jnp.ones((3, 2))), jnp.ones((3, 2)), c, 0.5)[0].size)
    np.testing.assert_allclose(sizes(jnp.asarray([0, -1, 3])), [1.0, 0.5, 0.5])


@pytest.mark.parametrize(
    "wrong", [{"rate": 3}, {"codes": 0}, {"width": 0}, {"rate": True}, {"codes": 2.5}, {"hidden": "8"}, {"dtype": "q"}]
)
def test_wrong_sizes_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        dataclasses.replace(SHAPE, **wrong)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_counts_and_averages_of_narrow_dtypes(dtype):
    """4000 vectors of four codes, against numpy in float64; a sum of bfloat16 would stop at 256."""
    rng = np.random.default_rng(0)
    codes, x = rng.integers(0, 4, 4000), jnp.asarray(rng.normal(size=(4000, 3)) + 3, dtype)
    share = np.bincount(codes, minlength=8) / 4000
    eps = float(jnp.finfo(dtype).eps)
    found = vq.perplexity(jnp.asarray(codes), 8, dtype)
    assert found.dtype == dtype and float(found) == pytest.approx(np.exp(-np.sum(share[:4] * np.log(share[:4]))), rel=8 * eps)
    state = vq.started(jnp.zeros((4, 3), dtype))
    update = jax.jit(vq.averaged)
    for _ in range(400):
        state, book = update(state, x, jnp.asarray(codes), 0.99)
    exact = np.stack([np.asarray(x, float)[codes == k].mean(0) for k in range(4)])
    assert book.dtype == dtype and state.size.dtype == state.total.dtype == jnp.float32
    np.testing.assert_allclose(np.asarray(book, float), exact * (1 - 0.99**400 / (0.99**400 + 1000)), rtol=eps + 1e-3)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_loss_of_a_narrow_autoencoder_is_in_float32(dtype):
    """That of its own logits and vectors, in float64."""
    shape = vq.Chunks(vocabulary=7, length=4, rate=2, codes=5, width=4, hidden=6, dtype=dtype)
    params, chunk = vq.init(shape, jax.random.key(0)), jnp.asarray(np.random.default_rng(0).integers(0, 7, (9, 4)))
    found = vq.loss(shape, params, chunk)
    x = vq.encode(shape, params, chunk)
    e = params.codebook[vq.nearest(x, params.codebook)]
    logits, x, e = (np.asarray(a, np.float64) for a in (vq.decode(shape, params, vq.straight(x, e)), x, e))
    entropy = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, np.asarray(chunk)[..., None], -1)[..., 0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, entropy.mean() + 1.25 * np.square(x - e).sum(-1).mean(), rtol=1e-5)
