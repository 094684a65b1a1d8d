"""Traces: prompts that list two trees, logs that a queue writes, one candidate within reach."""

import collections

import jax
import numpy as np
import pytest

from jaxdyn.data import traces
from jaxdyn.errors import UsageError

SIZES = [(1, 4), (1, 8), (2, 3), (3, 2)]


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


@pytest.mark.parametrize(("children", "height"), SIZES)
def test_the_trace_is_the_log_of_a_search_of_the_prompt(children, height):
    forest = traces.Forest(children=children, height=height)
    some = jax.jit(jax.vmap(lambda k: traces.draw(k, forest)))(jax.random.split(jax.random.key(children), 20))
    first = 0
    for prompt, trace, target in zip(*(np.asarray(part) for part in some), strict=True):
        assert prompt.shape == (forest.prompt,) and prompt[0] == forest.special("start")
        after = listed(forest, prompt)
        log, away = searched(after, int(prompt[-1]))
        assert trace.tolist() == log and len(log) == forest.trace
        found = [c for c in prompt[-3:-1].tolist() if c in away]
        assert found == [int(target)] and away[int(target)] == height
        other = next(c for c in prompt[-3:-1].tolist() if c not in away)
        assert not after[other] and not after[int(target)]
        first += prompt[-3] == target
    assert 2 <= first <= 18  # probability below 1e-3 on either side for a coin


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
