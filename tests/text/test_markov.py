"""The chain against exact fractions, its stationary law, and its streams against the matrix that they should follow."""

import functools
from fractions import Fraction

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxdyn.errors import UsageError
from jaxdyn.text import markov
from tests.data.limits import within

pytestmark = pytest.mark.usefixtures("x64")
WORDS, LENGTH, STRIDE = 12, 200_000, 40  # at memory 0.5 words that are 38 apart depend on one another with weight 4e-12


@functools.partial(jax.jit, static_argnums=(1, 4))
def whole(key, words, exponent, memory, layouts=3):
    drawn = markov.chain(key, words, exponent, memory, layouts)
    return drawn, markov.transition(drawn), markov.entropies(drawn)


sample = jax.jit(markov.sample, static_argnums=2)


@functools.cache
def stream_of(memory: float):
    with jax.enable_x64(True):
        drawn, matrix, exact = whole(jax.random.key(3), WORDS, 1.0, memory)
        return np.asarray(sample(drawn, jax.random.key(4), LENGTH)), np.asarray(drawn.law), np.asarray(matrix), exact


def overlaps(law: list[Fraction], order: list[int]) -> list[list[Fraction]]:
    """The shared length of every piece in the order of ranks and every piece in a layout."""
    start = [sum(law[:i], Fraction(0)) for i in range(len(law))]
    laid = {word: sum((law[w] for w in order[:place]), Fraction(0)) for place, word in enumerate(order)}
    return [
        [max(Fraction(0), min(start[i] + law[i], laid[j] + law[j]) - max(start[i], laid[j])) for j in range(len(law))]
        for i in range(len(law))
    ]


@pytest.mark.parametrize("exponent", [0, 1, 2])
def test_matrix_is_that_of_exact_fractions(exponent):
    drawn, matrix, exact = whole(jax.random.key(exponent), 7, float(exponent), 0.75)
    weights = [Fraction(1, (i + 1) ** exponent) for i in range(7)]
    law = [w / sum(weights) for w in weights]
    orders = np.asarray(drawn.order).tolist()
    assert all(sorted(order) == list(range(7)) for order in orders)
    shared = np.array([overlaps(law, order) for order in orders]).sum(0)
    expected = np.array([[law[j] / 4 + Fraction(3, 4) * shared[i, j] / 3 / law[i] for j in range(7)] for i in range(7)])
    assert all(sum(row) == 1 for row in expected)
    assert all(sum(law[i] * expected[i, j] for i in range(7)) == law[j] for j in range(7))  # stationary without rounding
    np.testing.assert_allclose(drawn.law, np.array(law, float), rtol=1e-14)
    np.testing.assert_allclose(matrix, expected.astype(float), atol=1e-14)
    assert exact.law == pytest.approx(stats.entropy(np.array(law, float)), rel=1e-13)
    rows = [stats.entropy(row) for row in expected.astype(float)]
    assert exact.rate == pytest.approx(np.dot(np.array(law, float), rows), rel=1e-12)


@pytest.mark.slow
@settings(deadline=None, max_examples=12)
@given(seed=st.integers(0, 10**6), words=st.sampled_from([2, 30, 400]), exponent=st.floats(0, 2), memory=st.floats(0, 1))
def test_zipf_is_stationary(seed, words, exponent, memory):
    with jax.enable_x64(True):
        drawn, matrix, exact = whole(jax.random.key(seed), words, exponent, memory)
        law, matrix = np.asarray(drawn.law), np.asarray(matrix)
        np.testing.assert_allclose(
            law, np.arange(1, words + 1) ** -exponent / np.sum(np.arange(1, words + 1) ** -exponent), rtol=1e-13
        )
        assert np.all(matrix >= 0)
        np.testing.assert_allclose(law @ matrix, law, rtol=0, atol=1e-12)
        # a row is a sum of r overlaps, each with the rounding of places in [0, 1), divided by the word's probability
        np.testing.assert_allclose((matrix.sum(1) - 1) * law, 0, atol=1e-13)
        assert 0 <= exact.rate <= exact.law * (1 + 1e-12)


def test_limits_of_the_entropies():
    _, _, exact = whole(jax.random.key(0), 50, 0.0, 0.0)
    assert exact.law == pytest.approx(np.log(50)) and exact.rate == pytest.approx(np.log(50))
    _, matrix, exact = whole(jax.random.key(0), 50, 0.0, 1.0, 1)
    assert exact.rate < 1e-10  # equal pieces in one layout: every word has one follower
    np.testing.assert_allclose(np.sort(np.asarray(matrix), 1)[:, -1], 1, atol=1e-12)


def test_exponent_and_memory_may_be_mapped():
    exponents, memories = np.array([0.5, 1.0, 1.5]), np.array([0.2, 0.5, 0.9])
    _, matrices, exact = jax.vmap(whole, (None, None, 0, 0))(jax.random.key(1), 30, exponents, memories)
    for i in range(3):
        _, matrix, alone = whole(jax.random.key(1), 30, exponents[i], memories[i])
        np.testing.assert_allclose(matrices[i], matrix, atol=1e-14)
        assert exact.rate[i] == pytest.approx(float(alone.rate), rel=1e-12)


def chi_square(pairs: np.ndarray, joint: np.ndarray) -> float:
    """The p-value of independent pairs of words under their joint law."""
    counts = np.zeros_like(joint)
    np.add.at(counts, tuple(pairs), 1)
    expected = joint * pairs.shape[1]
    large = expected >= 5  # the law of the statistic needs some five a cell; the rest is one cell
    observed, due = np.append(counts[large], counts[~large].sum()), np.append(expected[large], expected[~large].sum())
    return stats.chisquare(observed[due > 0], due[due > 0]).pvalue


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_streams_follow_the_powers_of_the_matrix(lag):
    stream, law, matrix, _ = stream_of(0.5)
    far = stream[: LENGTH - lag : STRIDE], stream[lag::STRIDE][: len(stream[: LENGTH - lag : STRIDE])]
    power = np.linalg.matrix_power(matrix, lag)
    assert chi_square(np.stack(far), law[:, None] * power) > 1e-4
    other = np.linalg.matrix_power(matrix, lag + 1)
    assert lag > 1 or chi_square(np.stack(far), law[:, None] * other) < 1e-9  # the test can fail


def test_streams_have_zipf_frequencies():
    stream, law, _, _ = stream_of(0.5)
    thin = stream[::STRIDE]
    assert stats.chisquare(np.bincount(thin, minlength=WORDS), law * len(thin)).pvalue > 1e-4


@pytest.mark.parametrize("memory", [0.5, 0.9])
def test_streams_have_the_exact_entropy_rate(memory):
    stream, law, matrix, exact = stream_of(memory)
    losses = -np.log(matrix[stream[:-1], stream[1:]])
    blocks = losses[: len(losses) // 500 * 500].reshape(-1, 500).mean(1)  # far longer than the memory: nearly independent
    error = blocks.std(ddof=1) / np.sqrt(len(blocks))
    assert abs(losses.mean() - exact.rate) < 5 * error
    counts = np.zeros((WORDS, WORDS))
    np.add.at(counts, (stream[:-1], stream[1:]), 1)
    plugged = stats.entropy(counts.ravel()) - stats.entropy(counts.sum(1))
    bias = (WORDS - 1) * WORDS / 2 / LENGTH  # the estimate from counts is too small by at most about this
    assert abs(plugged - exact.rate) < 5 * error + 2 * bias
    assert abs(exact.law - exact.rate) > 50 * error  # words without memory would be distinguished


def test_stream_without_any_redraw_is_a_path_of_the_chain():
    drawn, matrix, _ = whole(jax.random.key(5), 50, 1.0, 1.0, 1)
    stream = np.asarray(sample(drawn, jax.random.key(6), 1000))
    assert np.all(np.asarray(matrix)[stream[:-1], stream[1:]] > 0)
    assert np.mean(np.asarray(matrix) > 0) < 0.05  # a false step would nearly always be detected


def test_generated_corpus():
    made = markov.generate(7, words=20, length=1000)
    again = markov.generate(7, words=20, length=1000)
    other = markov.generate(8, words=20, length=1000)
    assert made.corpus.digest == again.corpus.digest != other.corpus.digest
    assert made.entropies == again.entropies
    assert made.entropies.law == other.entropies.law and made.entropies.rate != other.entropies.rate
    assert [len(made.corpus.train), len(made.corpus.valid), len(made.corpus.test)] == [900, 50, 50]
    assert made.corpus.vocabulary[:2] == ("w1", "w2") and len(made.corpus.vocabulary) == 20
    with jax.enable_x64(False):
        assert markov.generate(7, words=20, length=1000).corpus.digest == made.corpus.digest


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"words": 1}, "words=1 is not allowed: words is at least 2 and at most 4096"),
        ({"words": 5000}, "words=5000 is not allowed"),
        ({"exponent": -0.1}, "exponent=-0.1 is not allowed: exponent is at least 0 and at most 4"),
        ({"exponent": float("nan")}, "exponent=nan is not allowed: exponent is a .*number, at least 0"),
        ({"memory": 1.0}, "memory=1.0 is not allowed: memory is at least 0 and at most 0.99"),
        ({"memory": -0.1}, "memory=-0.1 is not allowed: memory is at least 0"),
        ({"layouts": 0}, "layouts=0 is not allowed: layouts is at least 1"),
        ({"length": 39}, "length=39 is not allowed: length is at least 40"),
    ],
)
def test_numbers_out_of_range(fields, message):
    with pytest.raises(UsageError, match=message):
        markov.generate(**fields)


@pytest.mark.thinned
@pytest.mark.parametrize(
    "ends",
    [
        {"words": 2, "layouts": 1, "length": 40, "exponent": 0, "memory": 0},
        {"words": 2, "layouts": 256, "length": 41, "exponent": 4, "memory": 0.99, "seed": -(2**63)},
        {"words": 4096, "layouts": 1, "length": 40, "exponent": 4.0, "memory": 0.99, "seed": 2**63 - 1},
    ],
)
def test_the_ends_of_the_ranges(ends):
    with within(60):
        made = markov.generate(**ends)
    assert 0 <= made.entropies.rate <= made.entropies.law <= np.log(ends["words"]) + 1e-12


def test_numbers_of_any_library_make_one_text():
    base = markov.generate(3, words=20, length=100)
    other = markov.generate(np.int64(3), words=np.int32(20), exponent=np.float32(1), memory=np.float64(0.8), length=np.array(100))
    assert other.corpus.digest == base.corpus.digest


@pytest.mark.parametrize("name", ["seed", "words", "layouts", "length", "exponent", "memory"])
@pytest.mark.parametrize("wrong", [True, "3", None, [3], float("nan"), float("inf"), 10**20, np.ones(2)])
def test_what_is_no_number_is_refused(name, wrong):
    with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
        markov.generate(**{name: wrong})


def test_chains_and_streams_refuse_what_they_know():
    drawn = whole(jax.random.key(0), 5, 1.0, 0.5)[0]
    for call in (
        lambda: markov.chain(jax.random.key(0), 1),
        lambda: markov.chain(jax.random.key(0), 5, -1.0),
        lambda: markov.chain(jax.random.key(0), 5, 1.0, 1.5),
        lambda: markov.chain(jax.random.key(0), 5, layouts=0),
        lambda: sample(drawn, jax.random.key(0), 0),
        lambda: markov.sample(drawn, jax.random.key(0), 2.0),
    ):
        with pytest.raises(UsageError, match="is not allowed"):
            call()
