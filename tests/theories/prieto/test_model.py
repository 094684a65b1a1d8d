"""The network, StableMax and the orthogonal gradient against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.theories.prieto import model


def test_outputs_are_those_of_two_hot_inputs(x64):
    weights = model.init(jax.random.key(0), 5, 6)
    assert all(w.dtype == jnp.float32 for w in weights) and [w.shape for w in weights] == [(10, 6), (6, 6), (6, 5)]
    a, b, answers = (np.asarray(v) for v in model.pairs(5))
    assert [tuple(v[:3]) for v in (a, b, answers)] == [(0, 0, 0), (0, 1, 2), (0, 1, 2)] and answers[-1] == 3
    x = np.zeros((25, 10))
    x[np.arange(25), a] = x[np.arange(25), 5 + b] = 1
    first, second, last = (np.asarray(w, float) for w in weights)
    for shift in (0.0, 0.3):
        hidden = np.maximum(np.maximum(x @ first + shift, 0) @ second + shift, 0) @ last
        np.testing.assert_allclose(model.outputs(weights, a, b, shift), hidden, atol=1e-5)
    bound = np.sqrt(1 / np.array([10, 6, 6]))
    assert all(np.abs(w).max() <= top for w, top in zip((first, second, last), bound, strict=True))


def test_softmax_of_signed_logs_is_stablemax(x64):
    z = 5 * jax.random.normal(jax.random.key(1), (8, 4), jnp.float64)
    rise = np.where(z >= 0, z + 1, 1 / (1 - np.minimum(z, 0)))
    expected = rise / rise.sum(1, keepdims=True)
    np.testing.assert_allclose(jax.nn.softmax(model.signed_log(z)), expected, rtol=1e-12)
    answers = jnp.array([0, 1, 2, 3, 0, 1, 2, 3])
    np.testing.assert_allclose(
        model.losses(model.signed_log(z), answers), -np.log(expected[np.arange(8), np.asarray(answers)]), rtol=1e-12
    )


def test_orthogonal_gradients_keep_their_norm_and_are_orthogonal(x64):
    g, w = jax.random.normal(jax.random.key(2), (2, 7, 3), jnp.float64)
    left = model.orthogonal(g, w)
    assert abs(float(jnp.vdot(left, w))) < 1e-12
    np.testing.assert_allclose(jnp.linalg.norm(left), jnp.linalg.norm(g), rtol=1e-12)
    assert float(jnp.vdot(left, g)) > 0
    np.testing.assert_allclose(model.orthogonal(2 * w, w), np.zeros((7, 3)), atol=1e-12)


def test_a_loss_is_zero_where_the_derivative_by_the_right_logit_is(x64):
    z = jnp.stack([jnp.zeros(60), -jnp.linspace(10.0, 25.0, 60), -30 * jnp.ones(60)], 1).astype(jnp.float32)
    answers = jnp.zeros(60, jnp.int32)
    zero = np.asarray(model.losses(z, answers) == 0)
    by_right = np.asarray(jax.grad(lambda x: jnp.sum(model.losses(x, answers)))(z))[:, 0]
    assert 0.2 < zero.mean() < 0.8 and np.array_equal(zero, by_right == 0)
