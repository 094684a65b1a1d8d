"""Chains, their traces, and classes of tokens."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.data import chains, classes, traces
from jaxdyn.data.classes import Vocabulary
from jaxdyn.errors import UsageError
from tests.data.limits import within

# Stationary laws, predictors by counts against loops, and the published losses of the predictors by sampling.


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


# Traces: prompts that list two trees, logs that a queue writes, one candidate within reach.


SIZES = [(1, 4, False), (1, 8, False), (2, 3, False), (3, 2, False), (1, 4, True), (2, 3, True)]


def listed(forest: traces.Forest, prompt: np.ndarray) -> dict[int, list[int]]:
    """Children of every name, read from a prompt."""
    rows = prompt[1:-3].reshape(forest.names, forest.children)
    return {v: [c for c in row.tolist() if c != forest.special("none")] for v, row in enumerate(rows)}


def searched(after: dict[int, list[int]], root: int) -> tuple[list[int], dict[int, int]]:
    """The log of a breadth-first search with a queue, and all distances."""
    away, queue, log = {root: 0}, collections.deque([root]), []
    while queue:
        vertex = queue.popleft()
        if after[vertex]:
            log += [vertex, *after[vertex]]
        for child in after[vertex]:
            assert child not in away
            away[child] = away[vertex] + 1
            queue.append(child)
    return log, away


def sentences(forest: traces.Forest, log: list[int]) -> list[int]:
    """A log in which every vertex and its children stand in a sentence."""
    word, rows = forest.word, np.reshape(log, (-1, 1 + forest.children)).tolist()
    each = ([word("take"), v, word(":"), word("see"), *found, word("queue"), *found, word(".")] for v, *found in rows)
    return [token for sentence in each for token in sentence]


@pytest.mark.thinned
@pytest.mark.parametrize(("children", "height", "wordy"), SIZES)
def test_the_trace_is_the_log_of_a_search_of_the_prompt(children, height, wordy):
    forest = traces.Forest(children=children, height=height, sentences=wordy)
    some = jax.jit(jax.vmap(lambda k: traces.draw(k, forest)))(jax.random.split(jax.random.key(children), 20))
    first = 0
    for prompt, trace, target in zip(*(np.asarray(part) for part in some), strict=True):
        assert prompt.shape == (forest.prompt,) and prompt[0] == forest.special("start")
        after = listed(forest, prompt)
        log, away = searched(after, int(prompt[-1]))
        log = sentences(forest, log) if wordy else log
        assert trace.tolist() == log and len(log) == forest.trace
        found = [c for c in prompt[-3:-1].tolist() if c in away]
        assert found == [int(target)] and away[int(target)] == height
        other = next(c for c in prompt[-3:-1].tolist() if c not in away)
        assert not after[other] and not after[int(target)]
        first += prompt[-3] == target
    assert 2 <= first <= 18  # probability below 1e-3 on either side for a coin


def test_words_are_tokens_of_their_own_after_the_special_ones():
    plain, wordy = traces.Forest(height=2), traces.Forest(height=2, sentences=True)
    assert plain.names == wordy.names and plain.prompt == wordy.prompt
    assert [wordy.word(w) for w in traces.WORDS] == list(range(plain.text, wordy.text))
    assert wordy.trace == 2 * wordy.record == 16 and plain.trace == 4


def test_a_problem_depends_on_its_key_alone():
    forest = traces.Forest(children=2, height=3)
    keys = jax.random.split(jax.random.key(0), 4)
    draw = lambda k: traces.draw(k, forest)  # noqa: E731
    for a, b in zip(jax.jit(jax.vmap(draw))(keys), jax.jit(draw)(keys[2]), strict=True):
        np.testing.assert_array_equal(np.asarray(a)[2], b)


@pytest.mark.parametrize("wrong", [{"children": 0}, {"height": 0}])
def test_wrong_sizes_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        traces.Forest(**wrong)


@pytest.mark.slow
@settings(deadline=None, max_examples=6, derandomize=True)
@given(
    sizes=st.sampled_from([(1, 1), (1, 30), (2, 1), (2, 5), (7, 2), (30, 1)]),
    sentences=st.booleans(),
    seed=st.integers(0, 2**31 - 1),
)
def test_draws_over_the_whole_range_of_traces(sizes, sentences, seed):
    forest = traces.Forest(children=sizes[0], height=sizes[1], sentences=sentences)
    with within(60):
        p = jax.jit(traces.draw, static_argnums=1)(jax.random.key(seed), forest)
    assert p.prompt.shape == (forest.prompt,) and p.trace.shape == (forest.trace,)
    assert p.target in p.prompt[-3:-1] and p.trace.max() < forest.text and p.prompt.max() < forest.names + len(traces.SPECIAL)


@pytest.mark.thinned
@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "2", None, float("nan"), 10**20])
def test_sizes_that_are_no_counts_are_refused(wrong):
    for name in ("children", "height"):
        with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
            traces.Forest(**{name: wrong})
    for sizes in ({"children": 2, "height": 20}, {"children": 10**5, "height": 10**5}, {"height": 2**20}):
        with within(5), pytest.raises(UsageError, match=r"are not allowed: there are at most 1048576 names"):
            traces.Forest(**sizes)
    with pytest.raises(UsageError, match="sentences=1 is not allowed"):
        traces.Forest(sentences=1)
    assert traces.Forest(children=np.int64(2), height=np.int64(3)) == traces.Forest(children=2, height=3)


def test_tokens_that_a_forest_does_not_have_are_refused():
    plain, wordy = traces.Forest(), traces.Forest(sentences=True)
    for call, message in (
        (lambda: plain.special("stop"), "name='stop' is not allowed: it is one of start"),
        (lambda: plain.word("take"), "a log without sentences has no words"),
        (lambda: wordy.word("give"), "name='give' is not allowed: it is one of take"),
    ):
        with pytest.raises(UsageError, match=message):
            call()


# Sequence classes: where tokens are, their law, and sampled counts against it.


draw = jax.jit(classes.draw, static_argnums=(1, 3, 4))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("queries", "each", "k", "size"), [(2, 1, 2, 34), (1, 2, 2, 33), (3, 2, 6, 79), (5, 2, 10, 125), (10, 2, 20, 240)]
)
def test_sizes_of_the_published_vocabularies(queries, each, k, size):
    v = Vocabulary(queries, each)
    assert (v.classes, v.size, v.contextual) == (k, size, 10 + 10 * k)


@pytest.mark.usefixtures("x64")
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


@pytest.mark.usefixtures("x64")
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


@pytest.mark.usefixtures("x64")
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


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
def test_draws_are_the_same_in_a_batch_and_alone():
    v, p = Vocabulary(1, 2), classes.law(Vocabulary(1, 2), dtype="float32")
    keys = jax.random.split(jax.random.key(1), 3)
    batched = jax.vmap(lambda key: classes.draw(key, v, p, 8, 20))(keys)
    alone = draw(keys[2], v, p, 8, 20)
    assert np.array_equal(batched[0][2], alone[0]) and np.array_equal(batched[1][2], alone[1])
    assert alone[1].dtype == np.float32
    assert not np.array_equal(batched[1][0], batched[1][1])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("sizes", [(0, 1), (1, 0), (1, 1, -1), (1, 1, 1, 0), (True, 1)])
def test_vocabularies_without_a_class_are_refused(sizes):
    with pytest.raises(jd.UsageError, match="is not allowed: (num_|common|distinct)"):
        Vocabulary(*sizes)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("kind", [np.int64, np.int8, np.array])
def test_sizes_of_numpy_are_sizes(kind):
    assert Vocabulary(kind(2), kind(1)) == Vocabulary(2, 1) and type(Vocabulary(kind(2)).num_last) is int


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
@settings(deadline=None, max_examples=6, derandomize=True)
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 4), st.integers(1, 4)),
    sequences=st.integers(1, 6),
    length=st.integers(1, 20),
    weight=st.floats(0, 1e6),
)
def test_draws_over_the_whole_range_of_classes(sizes, sequences, length, weight):
    v = Vocabulary(*sizes)
    with within(60):
        chosen, counts = draw(jax.random.key(0), v, classes.law(v, weight), sequences, length)
    assert counts.shape == (sequences, sizes[2] + sizes[3]) and np.all(np.sum(counts, 1) == length) and np.all(counts >= 0)
    assert np.all((chosen >= 0) & (chosen < v.classes))


@pytest.mark.usefixtures("x64")
def test_a_known_weight_may_stand_in_a_traced_program():
    weight = jnp.float32(0.5)
    np.testing.assert_allclose(jax.jit(lambda: classes.law(Vocabulary(2), weight))(), classes.law(Vocabulary(2), 0.5))


@pytest.mark.usefixtures("x64")
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
