"""Stationary laws, predictors by counts against loops, and the published losses of the predictors by sampling."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data import chains

TABLE = {2: (0.5745, 0.5090, 0.479), 3: (1.0048, 0.8850, 0.8175)}  # positions 2 to 100: by tokens, by pairs, P known


def test_stationary_law(x64):
    p = chains.transitions(jax.random.key(0), 4, "float64")
    values, vectors = np.linalg.eig(np.asarray(p).T)
    top = np.real(vectors[:, np.argmax(np.real(values))])
    np.testing.assert_allclose(chains.stationary(p), top / top.sum(), rtol=1e-9)
    np.testing.assert_allclose(jnp.sum(p, 1), 1, rtol=1e-12)


def test_doubly_stochastic(x64):
    p = chains.doubly_stochastic(chains.transitions(jax.random.key(1), 3, "float64"), 200)
    np.testing.assert_allclose((p.sum(0), p.sum(1)), np.ones((2, 3)), atol=1e-9)
    np.testing.assert_allclose(chains.stationary(p), np.full(3, 1 / 3), rtol=1e-8)


def test_sequences_have_the_chains_frequencies(x64):
    p = chains.transitions(jax.random.key(2), 3, "float64")
    rows = np.asarray(jax.vmap(lambda k: chains.sample(k, p, 3))(jax.random.split(jax.random.key(3), 40_000)))
    np.testing.assert_allclose(np.bincount(rows[:, 0], minlength=3) / len(rows), chains.stationary(p), atol=0.015)
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (rows[:, :-1].ravel(), rows[:, 1:].ravel()), 1)
    np.testing.assert_allclose(pairs / pairs.sum(1, keepdims=True), p, atol=0.02)


def test_counts_by_loops(x64):
    tokens = np.random.default_rng(4).integers(0, 3, 12)
    singles, pairs, follows = np.zeros((12, 3)), np.zeros((12, 3)), np.zeros((12, 12), bool)
    for t in range(12):
        singles[t] = [(np.sum(tokens[: t + 1] == j) + 1) / (t + 1 + 3) for j in range(3)]
        after = [tokens[s] for s in range(1, t + 1) if tokens[s - 1] == tokens[t]]
        pairs[t] = [(after.count(j) + 1) / (len(after) + 3) for j in range(3)]
        follows[t, [s for s in range(1, t + 1) if tokens[s - 1] == tokens[t]]] = True
    np.testing.assert_allclose(chains.unigram(jnp.asarray(tokens), 3, "float64"), singles, rtol=1e-12)
    np.testing.assert_allclose(chains.bigram(jnp.asarray(tokens), 3, "float64"), pairs, rtol=1e-12)
    np.testing.assert_array_equal(chains.followers(jnp.asarray(tokens)), follows)


@pytest.mark.parametrize("k", [2, 3])
def test_losses_are_those_of_the_independent_table(k):
    def losses(key):
        k_matrix, k_tokens = jax.random.split(key)
        p = chains.transitions(k_matrix, k)
        rows = chains.sample(k_tokens, p, 100)
        tables = chains.unigram(rows, k), chains.bigram(rows, k), p[rows]
        return jnp.stack([-jnp.mean(jnp.log(jnp.take_along_axis(q[:-1], rows[1:, None], 1))) for q in tables])

    found = np.asarray(jax.jit(jax.vmap(losses))(jax.random.split(jax.random.key(5), 4000)))
    error = found.std(0) / len(found) ** 0.5
    assert np.all(abs(found.mean(0) - TABLE[k]) < 4 * 2**0.5 * error)  # the table has as many sequences
