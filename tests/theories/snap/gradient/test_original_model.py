"""The original parameters against a transformer in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.snap import model
from jaxdyn.theories.snap.gradient import original_model

M, D, K = 6, 8, 3


def case(width=D):
    rng = np.random.default_rng(0)
    used = (np.arange(D) < width).astype(float)
    u, *square = rng.normal(size=(M, D)) * used, *(rng.normal(size=(3, D, D)) * used * used[:, None])
    task = model.Task(rng.dirichlet(np.ones(M), K), np.array([0, 1, 0]), np.array([3, 4, 5]), rng.dirichlet(np.ones(K)))
    return u, square, task


@pytest.mark.parametrize("width", [8, 5])
def test_forward_is_the_transformer_of_the_paper(x64, width):
    u, (w_v, w_q, w_k), task = case(width)
    queries, weights = np.array([1, 2]), original_model.Weights(*(jnp.asarray(w) for w in (w_v, w_q, w_k)))
    total = 0.0
    for n in range(K):
        x_t = u[queries[task.query[n]]]
        score = np.array([x_t @ w_q @ w_k.T @ u[token] / np.sqrt(width) for token in range(M)])
        mass = task.p[n] * np.exp(score)
        mass /= mass.sum()
        inner = u.T @ (mass / np.sqrt((mass**2).sum()))
        scores = np.array([u[token] @ w_v @ inner for token in range(M)])
        total -= task.weight[n] * (scores[task.label[n]] - np.log(np.exp(scores).sum()))
    got = original_model.loss(weights, jnp.asarray(u), task, jnp.asarray(queries), jnp.float64(width))
    assert float(got) == pytest.approx(total, rel=1e-12)


def test_reparametrised_network_is_the_same(x64):
    u, square, task = case()
    weights, queries = original_model.Weights(*(jnp.asarray(w) for w in square)), jnp.asarray([1, 2])
    y, z = original_model.decoder(weights, jnp.asarray(u)), original_model.pair_logits(weights, jnp.asarray(u), queries, D)
    assert np.allclose(y, u @ square[0].T @ u.T) and np.allclose(z, (u @ square[1] @ square[2].T @ u.T / np.sqrt(D))[1:3])
    both = original_model.loss(weights, jnp.asarray(u), task, queries, D), model.loss(model.Params(y, z), task)
    assert float(both[0]) == pytest.approx(float(both[1]), rel=1e-13)


def test_embeddings_and_rotations(x64):
    width = 6
    frame = original_model.embeddings(jax.random.key(0), M, D, jnp.float64(width), True)
    assert np.allclose(frame @ frame.T, np.eye(M), atol=1e-14) and np.all(frame[:, width:] == 0)
    apart = original_model.embeddings(jax.random.key(0), M, D, jnp.float64(width), False)
    assert np.allclose(np.linalg.norm(apart, axis=1), 1) and np.all(apart[:, width:] == 0)
    turn = original_model.rotation(jax.random.key(1), D, jnp.float64(width))
    assert np.allclose(turn @ turn.T, np.diag((np.arange(D) < width).astype(float)), atol=1e-14)
    assert np.all(np.isfinite(original_model.embeddings(jax.random.key(0), M, D, jnp.float64(3), False)))
    with pytest.raises(jd.UsageError, match="at least as many"):
        original_model.embeddings(jax.random.key(0), 9, 8, 8, True)
