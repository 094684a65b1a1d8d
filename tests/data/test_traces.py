"""Traces: prompts that list two trees, logs that a queue writes, one candidate within reach."""

import collections

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data import traces
from jaxdyn.errors import UsageError
from tests.data.limits import within

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
def test_draws_over_the_whole_range(sizes, sentences, seed):
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
