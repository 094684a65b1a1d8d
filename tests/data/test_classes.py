"""Sequence classes: where tokens are, their law, and sampled counts against it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.data import classes
from jaxdyn.data.classes import Vocabulary
from tests.data.limits import within

pytestmark = pytest.mark.usefixtures("x64")
draw = jax.jit(classes.draw, static_argnums=(1, 3, 4))


@pytest.mark.parametrize(
    ("queries", "each", "k", "size"), [(2, 1, 2, 34), (1, 2, 2, 33), (3, 2, 6, 79), (5, 2, 10, 125), (10, 2, 20, 240)]
)
def test_sizes_of_the_published_vocabularies(queries, each, k, size):
    v = Vocabulary(queries, each)
    assert (v.classes, v.size, v.contextual) == (k, size, 10 + 10 * k)


@settings(deadline=None, max_examples=20)
@given(queries=st.integers(1, 4), each=st.integers(1, 3), common=st.sampled_from([0, 1, 10]), distinct=st.sampled_from([1, 3, 10]))
def test_blocks_share_out_the_tokens(queries, each, common, distinct):
    v = Vocabulary(queries, each, common, distinct)
    own = v.support[:, common:]
    queries_at = v.contextual + np.arange(queries)
    everything = np.concatenate([np.arange(common), own.ravel(), queries_at, v.label])
    assert np.array_equal(np.sort(everything), np.arange(v.size))
    assert np.array_equal(v.support[:, :common], np.tile(np.arange(common), (v.classes, 1)))
    assert np.array_equal(np.bincount(v.query, minlength=queries), np.full(queries, each))


def test_law_is_the_recipe():
    v = Vocabulary(2)
    weights = np.concatenate([np.ones(10), [0.1 * k for k in range(1, 11)]])
    np.testing.assert_allclose(classes.law(v), weights / weights.sum(), rtol=1e-14)
    weights[:10] = 0.05
    on_support = classes.law(v, 0.05)
    np.testing.assert_allclose(on_support, weights / weights.sum(), rtol=1e-14)
    p = np.asarray(classes.laws(v, on_support))
    assert p.shape == (2, 34)
    np.testing.assert_allclose(p[1, 20:30], on_support[10:], rtol=1e-14)
    assert np.all(p[1, 10:20] == 0) and np.all(p[:, 30:] == 0)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-14)
    assert classes.law(v, dtype="float32").dtype == np.float32


def test_counts_follow_the_law():
    v, n, length = Vocabulary(3, 2), 4000, 127
    p = np.asarray(classes.law(v))
    chosen, counts = (np.asarray(a) for a in draw(jax.random.key(0), v, jnp.asarray(p), n, length))
    assert chosen.dtype == np.int32 and counts.dtype == np.float64
    assert np.all(counts.sum(1) == length) and np.all(counts >= 0) and np.all(counts == np.round(counts))
    share = np.bincount(chosen, minlength=6) / n
    assert np.all(np.abs(share - 1 / 6) < 5 * np.sqrt(5 / 36 / n))
    assert np.all(np.abs(counts.mean(0) - length * p) < 5 * np.sqrt(length * p * (1 - p) / n))
    covariance = length * (np.diag(p) - np.outer(p, p))  # of a multinomial: that of the counts of any two tokens
    assert np.abs(np.cov(counts.T) - covariance).max() < 6 * covariance.max() * np.sqrt(2 / n)
    for k in range(6):  # a class has no other law than the others
        assert np.abs(counts[chosen == k].mean(0) - length * p).max() < 5 * np.sqrt(length * p.max() / (chosen == k).sum())


@pytest.mark.slow
def test_draws_are_the_same_in_a_batch_and_alone():
    v, p = Vocabulary(1, 2), classes.law(Vocabulary(1, 2), dtype="float32")
    keys = jax.random.split(jax.random.key(1), 3)
    batched = jax.vmap(lambda key: classes.draw(key, v, p, 8, 20))(keys)
    alone = draw(keys[2], v, p, 8, 20)
    assert np.array_equal(batched[0][2], alone[0]) and np.array_equal(batched[1][2], alone[1])
    assert alone[1].dtype == np.float32
    assert not np.array_equal(batched[1][0], batched[1][1])


@pytest.mark.parametrize("sizes", [(0, 1), (1, 0), (1, 1, -1), (1, 1, 1, 0), (True, 1)])
def test_vocabularies_without_a_class_are_refused(sizes):
    with pytest.raises(jd.UsageError, match="is not allowed: (num_|common|distinct)"):
        Vocabulary(*sizes)


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.array])
def test_sizes_of_numpy_are_sizes(kind):
    assert Vocabulary(kind(2), kind(1)) == Vocabulary(2, 1) and type(Vocabulary(kind(2)).num_last) is int


@pytest.mark.slow
@settings(deadline=None, max_examples=6, derandomize=True)
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 4), st.integers(1, 4)),
    sequences=st.integers(1, 6),
    length=st.integers(1, 20),
    weight=st.floats(0, 1e6),
)
def test_draws_over_the_whole_range(sizes, sequences, length, weight):
    v = Vocabulary(*sizes)
    with within(60):
        chosen, counts = draw(jax.random.key(0), v, classes.law(v, weight), sequences, length)
    assert counts.shape == (sequences, sizes[2] + sizes[3]) and np.all(np.sum(counts, 1) == length) and np.all(counts >= 0)
    assert np.all((chosen >= 0) & (chosen < v.classes))


def test_a_known_weight_may_stand_in_a_traced_program():
    weight = jnp.float32(0.5)
    np.testing.assert_allclose(jax.jit(lambda: classes.law(Vocabulary(2), weight))(), classes.law(Vocabulary(2), 0.5))


def test_numbers_and_laws_that_do_not_fit_are_refused():
    v = Vocabulary(2)
    for wrong in (0, -1, True, 2.0, "2"):
        for name in ("sequences", "length"):
            with pytest.raises(jd.UsageError, match=f"{name}=.* is not allowed: {name} is"):
                classes.draw(jax.random.key(0), v, classes.law(v), **({"sequences": 2, "length": 2} | {name: wrong}))
    with pytest.raises(jd.UsageError, match=r"a law of shape \(3,\) is not allowed: a class of this vocabulary has 20 tokens"):
        classes.draw(jax.random.key(0), v, jnp.ones(3), 2, 2)
    for name in ("weight", "low", "high"):
        for wrong in (-0.1, float("nan"), float("inf"), True, "1"):
            with pytest.raises(jd.UsageError, match=f"{name}=.* is not allowed: {name} is"):
                classes.law(v, **{name: wrong})
    with pytest.raises(jd.UsageError, match="some token has a positive weight"):
        classes.law(Vocabulary(1, 1, 0, 1), low=0)
