"""Recall over any distance: rules token by token, and statistics against the rates."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data import recall
from jaxdyn.errors import UsageError
from tests.data.limits import within

SIZES = recall.Sizes(fillers=5, keys=3, values=2)


@pytest.fixture(scope="module")
def drawn():
    law = recall.chain(jax.random.key(0), SIZES)
    draw = jax.jit(jax.vmap(lambda k, f, q: recall.draw(k, SIZES, law, 50, f, q), (0, None, None)))
    keys = jax.random.split(jax.random.key(1), 300)
    return np.asarray(law), np.asarray(draw(keys, 0.4, 0.25)), np.asarray(draw(keys, 0.0, 0.0))


@pytest.mark.slow
def test_every_token_follows_the_rules(drawn):
    _, tokens, _ = drawn
    assert (SIZES.facts, SIZES.questions, SIZES.answers, SIZES.vocabulary) == (6, 12, 15, 17)
    assert np.all(tokens[:, 0] == 0) and np.all(tokens[:, 1:] > 0) and np.all(tokens < SIZES.vocabulary)
    distance = np.asarray(recall.distance(SIZES, tokens))
    for row, far in zip(tokens, distance, strict=True):
        facts = {}
        for t, token in enumerate(row):
            if SIZES.facts <= token < SIZES.questions:
                key, value = divmod(token - SIZES.facts, SIZES.values)
                assert key not in facts
                facts[key] = (t, value)
            asks = SIZES.questions <= token < SIZES.answers
            assert far[t] == (t - facts[token - SIZES.questions][0] if asks else 0)
            if asks and t + 1 < row.size:
                assert row[t + 1] == SIZES.answers + facts[token - SIZES.questions][1]
            answered = t > 0 and SIZES.questions <= row[t - 1] < SIZES.answers
            assert answered == (token >= SIZES.answers)


def test_rates_and_the_chain(drawn):
    law, tokens, plain = drawn
    question = (tokens >= SIZES.questions) & (tokens < SIZES.answers)
    late = question[:, 30:-1]
    free = ~question[:, 29:-2]  # after a question comes its answer
    assert abs(late[free].mean() - 0.25) < 0.02  # by then every fact was stated; 0.02 is 4 standard errors
    assert plain.max() <= SIZES.fillers
    for now in range(1, SIZES.fillers + 1):
        after = plain[:, 1:][plain[:, :-1] == now] - 1
        count = np.bincount(after, minlength=SIZES.fillers)
        error = np.sqrt(after.size * law[now] * (1 - law[now]))
        assert np.all(np.abs(count - after.size * law[now]) <= 5 * error + 1)


@pytest.mark.parametrize("wrong", [{"sizes": recall.Sizes(fillers=0)}, {"sizes": SIZES, "concentration": 0.0}])
def test_wrong_sizes_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        recall.chain(jax.random.key(0), **wrong)


@pytest.mark.slow
@settings(deadline=None, max_examples=8, derandomize=True)
@given(
    sizes=st.tuples(*[st.integers(1, 5)] * 3),
    length=st.integers(1, 30),
    stating=st.floats(0, 1) | st.sampled_from([0.0, 1.0]),
    asking=st.floats(0, 1) | st.sampled_from([0.0, 1.0]),
    concentration=st.sampled_from([1e-6, 0.1, 1e6]),
)
def test_draws_over_the_whole_range(sizes, length, stating, asking, concentration):
    sizes = recall.Sizes(*sizes)
    with within(60):
        law = recall.chain(jax.random.key(0), sizes, concentration)
        tokens = np.asarray(recall.draw(jax.random.key(1), sizes, law, length, stating, asking))
    assert tokens.shape == (length,) and tokens[0] == 0 and np.all(tokens[1:] > 0) and tokens.max() < sizes.vocabulary


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *[("length", wrong) for wrong in (0, -1, True, 3.0, "3")],
        *[(name, wrong) for name in ("stating", "asking") for wrong in (-0.1, 1.1, True, float("nan"), "1")],
    ],
)
def test_what_is_no_number_of_the_range_is_refused(name, wrong):
    law = recall.chain(jax.random.key(0), SIZES)
    with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
        recall.draw(jax.random.key(0), SIZES, law, **({"length": 5} | {name: wrong}))


def test_sizes_and_laws_that_do_not_fit_are_refused():
    law = recall.chain(jax.random.key(0), SIZES)
    for wrong in (0, True, 2.0, float("nan")):
        for name in recall.Sizes._fields:
            for call in (lambda s: recall.chain(jax.random.key(0), s), lambda s: recall.draw(jax.random.key(0), s, law, 5)):
                with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
                    call(SIZES._replace(**{name: wrong}))
    with pytest.raises(UsageError, match=r"a law of shape \(6, 5\) is not allowed: for 4 fillers"):
        recall.draw(jax.random.key(0), SIZES._replace(fillers=4), law, 5)
    for wrong in (float("nan"), 1e-7, 1e7, -1, True):
        with pytest.raises(UsageError, match="concentration=.* is not allowed: concentration is"):
            recall.chain(jax.random.key(0), SIZES, wrong)
