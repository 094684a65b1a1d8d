"""Stationary laws, predictors by counts against loops, and the published losses of the predictors by sampling."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data import chains
from jaxdyn.errors import UsageError
from tests.data.limits import within

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


@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow)])
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


@pytest.mark.slow
@settings(deadline=None, max_examples=6, derandomize=True)
@given(tokens=st.sampled_from([1, 2, 9]), length=st.sampled_from([1, 2, 40]), seed=st.integers(0, 2**31 - 1))
def test_draws_over_the_whole_range(tokens, length, seed):
    k_law, k_draw = jax.random.split(jax.random.key(seed))
    with within(60):
        p = jax.jit(chains.transitions, static_argnums=1)(k_law, tokens)
        drawn = np.asarray(jax.jit(chains.sample, static_argnums=2)(k_draw, p, length))
    assert drawn.shape == (length,) and 0 <= drawn.min() and drawn.max() < tokens
    for law in (chains.unigram, chains.bigram):
        np.testing.assert_allclose(np.sum(jax.jit(law, static_argnums=1)(drawn, tokens), 1), 1, rtol=1e-5)


@pytest.mark.parametrize("wrong", [-1, True, 2.0, "2", None, float("nan")])
def test_counts_that_are_refused(wrong):
    p = jnp.full((3, 3), 1 / 3)
    for name, call in (
        ("tokens", lambda: chains.transitions(jax.random.key(0), wrong)),
        ("length", lambda: chains.sample(jax.random.key(0), p, wrong)),
        ("rounds", lambda: chains.doubly_stochastic(p, wrong)),
        ("doublings", lambda: chains.stationary(p, wrong)),
        ("count", lambda: chains.unigram(jnp.zeros(3, int), wrong)),
        ("count", lambda: chains.bigram(jnp.zeros(3, int), wrong)),
    ):
        with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
            call()


@pytest.mark.parametrize("law", [chains.unigram, chains.bigram])
def test_tokens_beyond_the_count_are_refused(law):
    """They would be counted nowhere."""
    for wrong in (3, -1):
        with pytest.raises(UsageError, match=f"{wrong} in tokens is not allowed: it is a number from 0 to 2"):
            law(jnp.asarray([0, wrong]), 3)


@pytest.mark.parametrize("law", [chains.unigram, chains.bigram])
def test_counts_of_a_long_text_in_a_narrow_dtype(law):
    """As in float64, but for the rounding of each share: bfloat16 would count to 256, float16 to 2048."""
    tokens = np.random.default_rng(0).integers(0, 2, 3000)
    with jax.enable_x64(True):
        exact = np.asarray(law(jnp.asarray(tokens), 2, "float64"))
    for dtype in ("bfloat16", "float16", "float32"):
        found = law(jnp.asarray(tokens), 2, dtype)
        assert found.dtype == dtype
        np.testing.assert_allclose(np.asarray(found, float), exact, rtol=2 * float(jnp.finfo(dtype).eps))
