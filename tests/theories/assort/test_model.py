"""Replaced traces beside lists cut and joined by Python, opened again, and whole sequences."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data.traces import Forest
from jaxdyn.theories.assort import model

FOREST = Forest(children=2, height=2)  # 14 names, 9 tokens a trace
TRACE = jnp.arange(9) % 14
RATE = 2
CODES = jnp.array([7, 3, 0, 5])
NONE = FOREST.special("none")


@pytest.mark.slow
@pytest.mark.parametrize("m", [0, 1, 2, 3, 5, 8, 9, 50])
def test_replaced_and_opened(m):
    row, length = model.replaced(FOREST, TRACE, CODES, m, RATE)
    k = min(m, 9) // RATE
    codes = [FOREST.text + int(c) for c in CODES[:k]]
    expected = [FOREST.special("begin latent"), *codes, FOREST.special("end latent"), *TRACE[RATE * k :].tolist()]
    assert int(length) == len(expected) == 2 + k + 9 - RATE * k
    assert row.tolist() == expected + [NONE] * (11 - len(expected))
    texts = jnp.zeros((8, RATE), jnp.int32).at[CODES].set(TRACE[:8].reshape(4, RATE))
    opened, size = model.opened(FOREST, row, length, texts)
    np.testing.assert_array_equal(opened, TRACE)
    assert int(size) == 9
    if k:
        assert (model.opened(FOREST, row, length, texts[::-1])[0] != TRACE).any()


@pytest.mark.parametrize(("delimited", "kept"), [(True, True), (False, True), (True, False)])
def test_sequences_end_with_the_solution(delimited, kept):
    prompt, target = jnp.full(FOREST.prompt, 4), jnp.int32(11)
    row, length = model.middle(FOREST, TRACE, CODES, 4, RATE, delimited, kept)
    whole = model.whole(FOREST, prompt, row, length, target)
    assert whole.tokens.shape == whole.due.shape == (model.longest(FOREST),)
    between = model.replaced(FOREST, TRACE, CODES, 4, RATE)[0][:9].tolist() if delimited else TRACE.tolist()
    between = between if kept else []
    said = [*between, FOREST.special("answer"), 11, FOREST.special("end")]
    assert whole.tokens[FOREST.prompt :].tolist()[: len(said)] == said
    np.testing.assert_array_equal(whole.tokens[: FOREST.prompt], prompt)
    np.testing.assert_array_equal(np.flatnonzero(whole.due), FOREST.prompt + np.arange(len(said)))
