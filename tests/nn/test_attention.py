"""Attention against loops in NumPy, and what must hold for any queries and keys."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from jax.test_util import check_grads

from jaxdyn import Code
from jaxdyn.errors import UsageError
from jaxdyn.nn import KINDS, Transformer, attention, causal_mask
from tests.nn import plain_transformer

attend = jax.jit(attention.attend, static_argnames=("kind", "drop"))
weights = jax.jit(attention.weights, static_argnums=1)
rotate = jax.jit(attention.rotate)


SINKS = (-1.5, 0.5, 3.0)  # logits of the sinks of three heads


def rows(q, k, kind, causal, sink):
    """Weights of one head, query by query."""
    count = len(q)
    scores = q @ k.T / np.sqrt(q.shape[1])
    if causal:
        scores = np.where(np.tri(count, dtype=bool), scores, -np.inf)
    return np.stack([plain_transformer.weights(kind, s, sink) for s in scores])


def squared(scores, mask):
    """An attention of one's own: shares of the squared scores."""
    b = jnp.where(mask, scores**2, 0)
    return b / jnp.sum(b, -1, keepdims=True)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_attend_is_the_sum_over_keys_of_every_head(x64, kind, causal):
    q, k, v = (draw(2, 5, 3, 4, seed=i) for i in range(3))
    mask = causal_mask(5) if causal else None
    out, b = attend(q, k, v, kind=kind, mask=mask, sink=jnp.asarray(SINKS) if kind == "sink_bias" else None)
    assert out.shape == (2, 5, 3, 4) and b.shape == (2, 3, 5, 5)
    for batch in range(2):
        for h in range(3):
            expected = rows(q[batch, :, h], k[batch, :, h], kind, causal, SINKS[h])
            np.testing.assert_allclose(b[batch, h], expected, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(out[batch, :, h], expected @ v[batch, :, h], rtol=1e-11, atol=1e-13)


def test_queries_keys_and_values_may_differ_in_number_and_size(x64):
    q, k, v = draw(3, 2, 4), draw(6, 2, 4, seed=1), draw(6, 2, 5, seed=2)
    mask = draw(3, 6, seed=3) > -0.5
    mask[:, 0] = True
    out, b = attend(q, k, v, mask=jnp.asarray(mask))
    assert out.shape == (3, 2, 5)
    for h in range(2):
        e = np.where(mask, np.exp(q[:, h] @ k[:, h].T / 2), 0)
        np.testing.assert_allclose(b[h], e / e.sum(1, keepdims=True), rtol=1e-12)
        np.testing.assert_allclose(out[:, h], e / e.sum(1, keepdims=True) @ v[:, h], rtol=1e-11)


def test_rows_sum_to_one_however_large_the_scores(x64):
    scores = 1e4 * draw(2, 7, 7)
    for mask in (None, causal_mask(7)):
        b = np.asarray(weights(scores, "softmax", mask))
        np.testing.assert_allclose(b.sum(-1), 1, rtol=1e-12)
        assert np.all(b >= 0)
    assert np.all(np.asarray(weights(scores, "softmax", causal_mask(7)))[:, ~np.tri(7, dtype=bool)] == 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_masked_key_has_no_weight_and_no_gradient(x64, kind):
    mask, sink = causal_mask(4), jnp.ones(4) if kind == "sink_bias" else None
    assert np.all(np.asarray(weights(draw(4, 4), kind, mask, sink))[~np.asarray(mask)] == 0)
    slope = jax.jit(jax.grad(lambda s: jnp.sum(weights(s, kind, mask, sink) * draw(4, 4, seed=1))))(draw(4, 4))
    assert np.all(np.asarray(slope)[~np.asarray(mask)] == 0) and np.all(np.isfinite(slope))


def test_drop_acts_on_the_mixing_weights_only(x64):
    q, k, v = (draw(4, 1, 2, seed=i) for i in range(3))
    out, b = attend(q, k, v, drop=lambda b: 0 * b)
    assert np.all(np.asarray(out) == 0)
    np.testing.assert_allclose(b, attend(q, k, v)[1])


def test_unknown_kinds_are_refused_in_words():
    with pytest.raises(UsageError, match="attention='cosine' is not allowed: it is one of softmax, exp, linear, zero_sink"):
        weights(jnp.zeros((2, 2)), "cosine")


@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_a_sink_that_is_missing_or_of_no_use_is_refused(kind):
    with pytest.raises(UsageError, match="the logit of a sink goes with sink_bias"):
        weights(jnp.zeros((2, 2)), kind, None, jnp.zeros(2))
    with pytest.raises(UsageError, match="the logit of a sink goes with sink_bias"):
        weights(jnp.zeros((2, 2)), "sink_bias")


@pytest.mark.parametrize("shift", [-900, 0, 900])
def test_sinks_against_many_digits_at_shifted_logits(x64, shift):
    scores, sinks = 5 * draw(4, 6), np.array([-30.0, 0.0, 2.0, 30.0])
    zero = np.asarray(weights(scores + shift, "zero_sink"))
    bias = np.asarray(weights(scores + shift, "sink_bias", None, jnp.asarray(sinks + shift)))
    for i, row in enumerate(scores):
        e = [mpmath.exp(mpmath.mpf(s) + shift) for s in row]
        for b, total in ((zero[i], 1), (bias[i], mpmath.exp(mpmath.mpf(sinks[i]) + shift))):
            expected = [float(x / (total + mpmath.fsum(e))) for x in e]
            np.testing.assert_allclose(b, expected, rtol=1e-12, atol=1e-300)
    assert np.all(np.isfinite(zero)) and np.all(np.isfinite(bias))


def test_special_sinks_are_the_softmax_and_the_zero_sink(x64):
    scores, mask = 3 * draw(2, 5, 5), causal_mask(5)
    np.testing.assert_allclose(weights(scores, "sink_bias", mask, jnp.full(5, -1e3)), weights(scores, "softmax", mask), rtol=1e-13)
    np.testing.assert_allclose(weights(scores, "sink_bias", mask, jnp.zeros(5)), weights(scores, "zero_sink", mask), rtol=1e-13)
    wide = np.concatenate([np.zeros((2, 5, 1)), scores], -1)
    padded = np.concatenate([np.ones((5, 1), bool), np.asarray(mask)], 1)
    np.testing.assert_allclose(
        weights(scores, "zero_sink", mask), weights(wide, "softmax", jnp.asarray(padded))[..., 1:], rtol=1e-12
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_that_sees_no_key_has_zero_weights_and_gradients(x64, kind):
    mask = np.array([[True, False, True], [False, False, False]])
    sink = jnp.full(2, 0.5) if kind == "sink_bias" else None
    scores = draw(2, 3)
    b = np.asarray(weights(scores, kind, jnp.asarray(mask), sink))
    slope = jax.jit(jax.grad(lambda s: jnp.sum(weights(s, kind, jnp.asarray(mask), sink) ** 2)))(scores)
    assert np.all(b[1] == 0) and np.all(np.asarray(slope)[1] == 0)
    assert np.all(b[0, [0, 2]] != 0) or kind == "relu"


@pytest.mark.slow
def test_derivatives_of_the_softmax_are_diag_b_less_b_b(x64):
    scores, mask = jax.random.normal(jax.random.key(3), (2, 4, 4)), causal_mask(4)
    ds, g = jax.random.normal(jax.random.key(4), (2, *scores.shape))
    b, db = jax.jit(lambda *at: jax.jvp(lambda s: attention.weights(s, mask=mask), *at))((scores,), (ds,))
    back = jax.jit(jax.grad(lambda s: jnp.sum(g * attention.weights(s, mask=mask))))(scores)
    slope = np.stack([np.diag(row) - np.outer(row, row) for row in np.asarray(b).reshape(-1, 4)]).reshape(*b.shape, 4)
    np.testing.assert_allclose(db, np.einsum("bnmk,bnk->bnm", slope, ds), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(back, np.einsum("bnmk,bnk->bnm", slope, g), rtol=1e-12, atol=1e-15)
    check_grads(jax.jit(lambda s: attention.weights(s, mask=mask)), (scores,), order=2)


def test_gradients_of_sinks_are_those_of_the_quotient(x64):
    scores, sink = draw(3, 4), jnp.asarray(draw(3, seed=1))
    ours = jax.jit(jax.grad(lambda s, b: jnp.sum(weights(s, "sink_bias", None, b) ** 2), argnums=(0, 1)))(scores, sink)
    plain = lambda s, b: jnp.sum((jnp.exp(s) / (jnp.exp(b)[:, None] + jnp.sum(jnp.exp(s), -1, keepdims=True))) ** 2)  # noqa: E731
    for a, b in zip(ours, jax.jit(jax.grad(plain, argnums=(0, 1)))(scores, sink), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("kind", ["softmax", "zero_sink"])
def test_sums_of_bfloat16_run_in_float32(kind):
    n = 4096  # a sum of 4096 equal terms in bfloat16 stops at 256
    scores = jnp.zeros((1, n), jnp.bfloat16)
    b = weights(scores, kind)
    assert b.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(b, np.float32), 1 / n, rtol=1e-3)
    q, k, v = (jnp.ones((m, 1, 2), jnp.bfloat16) for m in (1, n, n))
    out, b = attend(q, k, v, kind=kind)
    assert out.dtype == jnp.bfloat16 and b.dtype == jnp.float32
    np.testing.assert_allclose(np.asarray(out, np.float32), 1, rtol=5e-3)


@pytest.mark.parametrize("kind", ["softmax", "sink_bias", "relu"])
def test_extra_keys_are_keys_that_every_query_sees(x64, kind):
    q, k, v = (draw(2, 4, 3, 4, seed=i) for i in range(3))
    more = draw(2, 3, 4, seed=3), draw(2, 3, 4, seed=4)
    sink = jnp.asarray(SINKS) if kind == "sink_bias" else None
    bias = jnp.asarray(draw(3, 4, 4, seed=5))
    extra = tuple(map(jnp.asarray, more))
    out, b = attend(q, k, v, kind=kind, mask=causal_mask(4), extra=extra, sink=sink, bias=bias)
    key, value = (np.concatenate([np.broadcast_to(m, (2, *m.shape)), x], 1) for m, x in zip(more, (k, v), strict=True))
    mask = np.concatenate([np.ones((4, 2), bool), np.tri(4, dtype=bool)], 1)
    wide = np.concatenate([np.zeros((3, 4, 2)), bias], -1)
    expected = attend(q, key, value, kind=kind, mask=jnp.asarray(mask), sink=sink, bias=jnp.asarray(wide))
    np.testing.assert_allclose(out, expected[0], rtol=1e-12)
    np.testing.assert_allclose(b, expected[1], rtol=1e-12)
    assert b.shape == (2, 3, 4, 6)


def test_an_extra_key_of_logit_and_value_zero_is_the_zero_sink(x64):
    q, k, v = (draw(4, 2, 6, seed=i) for i in range(3))
    nothing = jnp.zeros((1, 2, 6))
    a = attend(q, k, v, mask=causal_mask(4), extra=(nothing, nothing))
    b = attend(q, k, v, mask=causal_mask(4), kind="zero_sink")
    np.testing.assert_allclose(a[0], b[0], rtol=1e-12)
    np.testing.assert_allclose(a[1][..., 1:], b[1], rtol=1e-12)


def test_rotate_is_a_complex_rotation_and_keeps_lengths(x64):
    x = draw(2, 9, 1, 8)
    turned = np.asarray(rotate(x))
    shape = Transformer(vocabulary=1, width=8, hidden=1)
    for batch in range(2):
        expected = [plain_transformer.turned(shape, y, i) for i, y in enumerate(x[batch, :, 0])]
        np.testing.assert_allclose(turned[batch, :, 0], expected, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-12)
    np.testing.assert_allclose(turned[:, 0], x[:, 0], rtol=1e-14)


def test_rotated_scores_depend_on_the_difference_of_positions_only(x64):
    q, k = rotate(np.stack([np.broadcast_to(draw(1, 1, 8, seed=i), (9, 1, 8)) for i in range(2)]))
    scores = np.einsum("nhe,mhe->nm", q, k)
    for shift in range(-8, 9):
        along = np.diagonal(scores, shift)
        np.testing.assert_allclose(along, along[0], rtol=1e-10, atol=1e-12)
    assert np.ptp(scores[0]) > 0.1


def test_rotate_takes_positions_of_any_order(x64):
    x, at = draw(2, 5, 3, 4), np.array([[4, 0, 2, 2, 9], [0, 1, 2, 3, 4]])
    turned = np.asarray(rotate(x, positions=jnp.asarray(at)))
    long = np.zeros((10, 3, 4))
    for batch in range(2):
        for i in range(5):
            long[at[batch, i]] = x[batch, i]
            np.testing.assert_allclose(turned[batch, i], np.asarray(rotate(long))[at[batch, i]], rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(rotate(x, positions=jnp.arange(5)), rotate(x))


def test_alibi_is_a_slope_of_every_head_times_the_distance():
    out = np.asarray(attention.alibi(jnp.asarray([3, 7]), jnp.asarray([0, 3, 9]), 4))
    assert out.shape == (4, 2, 3) and out.dtype == np.float32
    for head, slope in enumerate([1 / 4, 1 / 16, 1 / 64, 1 / 256]):
        np.testing.assert_allclose(out[head], -slope * np.array([[3, 0, -6], [7, 4, -2]]))


def test_rotate_refuses_an_odd_number_of_entries():
    with pytest.raises(UsageError, match="rotary positions need an even number of entries per head, got 3"):
        rotate(jnp.zeros((2, 1, 3)))


@pytest.mark.parametrize("kind", ["softmax", "exp", "relu", "zero_sink"])
def test_a_mask_that_is_no_truth_value_is_refused(kind):
    """A term of 0 and -inf would be taken for its opposite: -inf is not zero."""
    for mask in (jnp.where(causal_mask(3), 0, -jnp.inf), 2 * jnp.eye(3, dtype=int)):
        with pytest.raises(UsageError, match=r"mask=.*\[3,3\] is not allowed: it is True where a query sees a key"):
            attention.weights(jnp.zeros((3, 3)), kind, mask)


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_keys_that_stand_there_several_times(x64, kind):
    scores, counts = draw(4, 5), np.array([2, 1, 0, 3, 1])
    sink = jnp.asarray([0.3]) if kind == "sink_bias" else None
    mask = np.ones((4, 5), bool)
    mask[1, 3], mask[2] = False, False
    b = weights(scores, kind, jnp.asarray(mask), sink, jnp.asarray(counts, float))
    every = np.repeat(np.arange(5), counts)
    long = np.asarray(weights(scores[:, every], kind, jnp.asarray(mask[:, every]), sink))
    np.testing.assert_allclose(b, np.stack([long[:, every == j].sum(1) for j in range(5)], 1), rtol=1e-12, atol=1e-14)
    assert np.all(np.asarray(b)[2] == 0)
    halves = weights(scores, kind, jnp.asarray(mask), sink, jnp.full(5, 0.5))  # a share of a key
    if kind in ("softmax", "relu"):
        np.testing.assert_allclose(halves, weights(scores, kind, jnp.asarray(mask), sink), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_counted_weights_are_finite_and_right(x64, kind):
    scores, counts = jnp.asarray(draw(3, 4)), jnp.asarray([2.0, 0.0, 1.5, 1.0])
    sink = jnp.asarray([0.3]) if kind == "sink_bias" else None
    mask = jnp.asarray(np.tri(3, 4, dtype=bool))
    check_grads(lambda s: attention.weights(s, kind, mask, sink, counts), (scores,), 1, modes=["rev"], atol=1e-5, rtol=1e-5)


def test_a_switch_between_kinds_is_each_of_them(x64):
    scores, sink = draw(4, 4), jnp.asarray([0.3])
    for index, name in enumerate(KINDS):
        switched = jax.jit(lambda i: attention.weights(scores, Code(i, KINDS), causal_mask(4), sink))(index)
        alone = weights(scores, name, causal_mask(4), sink if name == "sink_bias" else None)
        np.testing.assert_allclose(switched, alone, rtol=1e-12)


def test_an_attention_of_ones_own_is_a_function_of_scores_and_mask(x64):
    scores = draw(2, 4, 4)
    own = weights(scores, "tests.nn.test_attention:squared", causal_mask(4))
    expected = np.tril(scores**2)
    np.testing.assert_allclose(own, expected / expected.sum(-1, keepdims=True), rtol=1e-12)
    for wrong, words in (
        ("tests.nn.test_attention:cubed", "tests.nn.test_attention has no function 'cubed'"),
        ("tests.nothing:squared", "'tests.nothing' cannot be imported"),
        (":squared", "'' cannot be imported"),
    ):
        with pytest.raises(UsageError, match=f"attention={wrong!r} is not allowed: {words}"):
            attention.weights(scores, wrong)
    with pytest.raises(UsageError, match="counts go with softmax, exp"):
        attention.weights(scores, "tests.nn.test_attention:squared", counts=jnp.ones(4))


@pytest.mark.parametrize(("dtype", "close"), [("bfloat16", 0.02), ("float16", 0.003), ("float32", 2e-4)])
def test_rotations_of_short_numbers_are_those_of_long_ones(dtype, close):
    """In bfloat16 there is no number between 256 and 258, so positions and angles are not calculated in it."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(600, 1, 8)), dtype)
    z = np.asarray(x, float)[:, 0, :4] + 1j * np.asarray(x, float)[:, 0, 4:]
    turned = z * np.exp(1j * np.arange(600)[:, None] * 10_000.0 ** (-np.arange(4) / 4))
    found = np.asarray(attention.rotate(x), float)[:, 0]
    np.testing.assert_allclose(found, np.concatenate([turned.real, turned.imag], -1), atol=close, rtol=close)
    assert attention.rotate(x).dtype == dtype
