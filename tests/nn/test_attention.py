"""Attention against loops in NumPy, and what must hold for any queries and keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.nn import KINDS, attention, causal_mask

from .plain_transformer import attention_weights, rotated

attend = jax.jit(attention.attend, static_argnames=("kind", "drop"))
weights = jax.jit(attention.weights, static_argnums=1)
rotate = jax.jit(attention.rotate)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_attend_is_the_sum_over_keys_of_every_head(x64, kind, causal):
    q, k, v = (draw(2, 5, 3, 4, seed=i) for i in range(3))
    mask = causal_mask(5) if causal else None
    out, b = attend(q, k, v, kind=kind, mask=mask)
    assert out.shape == (2, 5, 3, 4) and b.shape == (2, 3, 5, 5)
    for batch in range(2):
        for h in range(3):
            expected = attention_weights(q[batch, :, h], k[batch, :, h], kind, causal)
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
    mask = causal_mask(4)
    assert np.all(np.asarray(weights(draw(4, 4), kind, mask))[~np.asarray(mask)] == 0)
    slope = jax.jit(jax.grad(lambda s: jnp.sum(weights(s, kind, mask) * draw(4, 4, seed=1))))(draw(4, 4))
    assert np.all(np.asarray(slope)[~np.asarray(mask)] == 0) and np.all(np.isfinite(slope))


def test_drop_acts_on_the_mixing_weights_only(x64):
    q, k, v = (draw(4, 1, 2, seed=i) for i in range(3))
    out, b = attend(q, k, v, drop=lambda b: 0 * b)
    assert np.all(np.asarray(out) == 0)
    np.testing.assert_allclose(b, attend(q, k, v)[1])


def test_unknown_kinds_are_refused_in_words():
    with pytest.raises(UsageError, match="attention='cosine' is not allowed: it is one of softmax, exp, linear"):
        weights(jnp.zeros((2, 2)), "cosine")


def test_rotate_is_a_complex_rotation_and_keeps_lengths(x64):
    x = draw(2, 9, 1, 8)
    turned = np.asarray(rotate(x))
    for batch in range(2):
        for h in range(1):
            np.testing.assert_allclose(turned[batch, :, h], rotated(x[batch, :, h]), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-12)
    np.testing.assert_allclose(turned[:, 0], x[:, 0], rtol=1e-14)


def test_rotated_scores_depend_on_the_difference_of_positions_only(x64):
    q, k = rotate(np.stack([np.broadcast_to(draw(1, 1, 8, seed=i), (9, 1, 8)) for i in range(2)]))
    scores = np.einsum("nhe,mhe->nm", q, k)
    for shift in range(-8, 9):
        along = np.diagonal(scores, shift)
        np.testing.assert_allclose(along, along[0], rtol=1e-10, atol=1e-12)
    assert np.ptp(scores[0]) > 0.1


def test_rotate_refuses_an_odd_number_of_entries():
    with pytest.raises(UsageError, match="rotary positions need an even number of entries per head, got 3"):
        rotate(jnp.zeros((2, 1, 3)))
