"""The network of Scan & Snap against a transformer written position by position in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.theories.snap import model

M, R = 7, 2
cross_entropy = jax.jit(model.cross_entropy)
attend = jax.jit(model.attend)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def forward(y, z, ids, row):
    """Log-probabilities of the next token for one sequence of contextual tokens; no key for the query."""
    b = softmax(np.array([z[row, token] for token in ids]))
    f = np.zeros(M)
    for weight, token in zip(b, ids, strict=True):
        f[token] += weight
    f /= np.sqrt((f**2).sum())
    return np.log(softmax(y.T @ f))


def weights(rng):
    return rng.normal(size=(M, M)), rng.normal(size=(R, M))


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), length=st.sampled_from([1, 3, 12]))
def test_counts_are_positions(seed, length):
    rng = np.random.default_rng(seed)
    y, z = weights(rng)
    ids, row, label = rng.integers(0, M, (4, length)), rng.integers(0, R, 4), rng.integers(0, M, 4)
    counts = np.stack([np.bincount(one, minlength=M) for one in ids]).astype(float)
    weight = rng.dirichlet(np.ones(4))
    want = -sum(w * forward(y, z, one, r)[target] for w, one, r, target in zip(weight, ids, row, label, strict=True))
    with jax.enable_x64(True):
        got = cross_entropy(model.Params(y, z), counts, row, label, weight)
    assert float(got) == pytest.approx(want, rel=1e-12)


def test_infinite_length_is_the_limit_of_counts(x64):
    rng = np.random.default_rng(1)
    params = model.Params(*(jnp.asarray(a) for a in weights(rng)))
    p = rng.dirichlet(np.ones(M), 3)
    task = model.Task(p, np.array([0, 1, 0]), np.array([4, 5, 6]), np.array([0.2, 0.3, 0.5]))
    counts = np.round(1e9 * p)
    finite = cross_entropy(params, counts, task.query, task.label, task.weight)
    assert float(model.loss(params, task)) == pytest.approx(float(finite), rel=1e-8)


def test_attention_is_blind_to_shifts_and_absent_tokens(x64):
    rng = np.random.default_rng(2)
    z, p = rng.normal(size=M), np.array([0.5, 0.0, 0.25, 0.25, 0, 0, 0])
    c = np.asarray(attend(z, p))
    assert np.allclose(attend(z + 300.0, p), c, rtol=1e-12) and float(c.sum()) == pytest.approx(1)
    assert np.all(c[np.array([1, 4, 5, 6])] == 0)
    z[1] = 1e6
    assert np.allclose(attend(z, p), c, rtol=1e-14)
    slope = np.asarray(jax.jit(jax.jacobian(model.attend))(z, p))
    assert np.all(np.isfinite(slope)) and np.all(slope[:, 1] == 0) and np.allclose(slope.sum(1), 0, atol=1e-15)


def test_normalisation_is_the_plain_length(x64):
    c = jnp.asarray([3.0, 4.0, 0.0])
    assert np.allclose(model.normalized(c), [0.6, 0.8, 0.0]) and np.allclose(model.normalized(7 * c), model.normalized(c))


def test_zeros_has_a_row_for_each_query(x64):
    task = model.Task(np.eye(3, M), np.array([0, 2, 1]), np.array([4, 5, 6]), np.ones(3) / 3)
    start = model.zeros(task)
    assert start.y.shape == (M, M) and start.z.shape == (3, M) and start.z.dtype == np.float64
    assert model.zeros(task, "float32").y.dtype == np.float32
    assert float(model.loss(start, task)) == pytest.approx(np.log(M), rel=1e-14)


def test_sampled_counts(x64):
    p = jnp.asarray([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
    draw = jax.jit(lambda key: model.sampled(key, jnp.broadcast_to(p, (2000, 2, 3)), 10))
    counts = np.asarray(draw(jax.random.key(0)))
    assert counts.shape == (2000, 2, 3) and np.all(counts.sum(-1) == 10) and np.all(counts[:, 0, 2] == 0)
    assert np.allclose(counts.mean(0) / 10, p, atol=4 * 0.5 / np.sqrt(20_000))
    assert np.array_equal(counts, draw(jax.random.key(0)))


def test_batch_is_a_loop_and_jit_changes_nothing(x64):
    rng = np.random.default_rng(3)
    params = model.Params(*(jnp.asarray(a) for a in weights(rng)))
    p, row = jnp.asarray(rng.dirichlet(np.ones(M), 5)), jnp.asarray([0, 1, 1, 0, 1])
    together = jax.jit(model.logits)(params, p, row)
    for n in range(5):
        assert np.allclose(together[n], model.logits(params, p[n : n + 1], row[n : n + 1])[0], rtol=1e-12, atol=1e-14)
