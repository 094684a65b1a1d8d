"""The Bigram-Backcopy task: rules token by token, and statistics against the chain."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data import backcopy
from jaxdyn.errors import UsageError
from tests.data.limits import within

drawing = jax.jit(backcopy.draw, static_argnums=2)  # as one program: by itself every operation would be compiled


@pytest.fixture(scope="module")
def drawn():
    law = jax.jit(lambda key: backcopy.law(key, 9, 2))(jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 400)
    return law, np.asarray(jax.jit(jax.vmap(lambda k: backcopy.draw(k, law, 60)))(keys))


def test_every_token_follows_the_rules(drawn):
    law, tokens = drawn
    chain, triggers = np.asarray(law.chain), np.asarray(law.triggers)
    assert np.flatnonzero(triggers).tolist() == [1, 2]
    np.testing.assert_allclose(chain.sum(1), 1, rtol=1e-6)
    assert np.all(chain[:, 0] == 0) and np.all(chain[0, 1:3] == 0) and np.all(chain[1:, 1:] >= 0.1 / 8 * 0.999)
    assert np.all(tokens[:, 0] == 0) and np.all(tokens[:, 1:] > 0)
    for row in tokens[:50]:
        for t in range(1, 59):
            if triggers[row[t]]:
                assert row[t + 1] == row[t - 1] and not triggers[row[t + 1]]
    np.testing.assert_array_equal(backcopy.due(law, tokens), triggers[tokens])


def test_transitions_have_the_chain_s_frequencies(drawn):
    law, tokens = drawn
    chain = np.asarray(law.chain, float)
    for now in np.flatnonzero(~np.asarray(law.triggers)):
        after = tokens[:, 1:][tokens[:, :-1] == now]
        count = np.bincount(after, minlength=9)
        error = np.sqrt(after.size * chain[now] * (1 - chain[now]))
        assert np.all(np.abs(count - after.size * chain[now]) <= 5 * error + 1)


def test_the_floor_is_the_entropy_of_the_rows():
    law = jax.jit(lambda key: backcopy.law(key, 7, 1, share=0.5))(jax.random.key(3))
    chain = np.asarray(law.chain, float)
    rows = [-sum(p * np.log(p) for p in row if p > 0) for row in chain]
    rows[1] = 0
    np.testing.assert_allclose(jax.jit(backcopy.entropies)(law), rows, rtol=1e-5)


def test_without_triggers_it_is_a_chain():
    law = jax.jit(lambda key: backcopy.law(key, 5, 0))(jax.random.key(0))
    assert not np.any(law.triggers)


@pytest.mark.parametrize("wrong", [{"triggers": 8}, {"triggers": -1}, {"concentration": 0.0}, {"share": 1.5}])
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        backcopy.law(jax.random.key(0), 9, **wrong)


@pytest.mark.slow
@settings(deadline=None, max_examples=5, derandomize=True)
@given(
    vocabulary=st.sampled_from([2, 3, 9]),
    part=st.floats(0, 1),
    concentration=st.floats(1e-6, 1e6) | st.sampled_from([1e-6, 1e-3, 1e6]),
    share=st.floats(0, 1) | st.sampled_from([0.0, 1.0]),
    length=st.sampled_from([1, 2, 20]),
    seed=st.integers(0, 2**31 - 1),
)
def test_draws_over_the_whole_range(vocabulary, part, concentration, share, length, seed):
    triggers = round(part * (vocabulary - 2))
    with within(60):
        law = jax.jit(lambda k: backcopy.law(k, vocabulary, triggers, concentration=concentration, share=share))(
            jax.random.key(seed)
        )
        tokens = np.asarray(drawing(jax.random.key(seed), law, length))
    np.testing.assert_allclose(np.sum(law.chain, 1), 1, rtol=1e-5)
    assert tokens.shape == (length,) and tokens[0] == 0 and np.all(tokens[1:] > 0) and tokens.max() < vocabulary
    assert np.all(backcopy.entropies(law) >= 0) and not law.triggers[vocabulary - 1]


@pytest.mark.slow
def test_a_first_row_with_all_its_weight_on_triggers_is_uniform_on_the_others():
    """Rows with few likely tokens: of 60 such rows some have no weight that float32 can hold on the other tokens."""
    laws = jax.vmap(lambda k: backcopy.law(k, 9, 6, concentration=1e-3, share=0.0).chain)(jax.random.split(jax.random.key(0), 60))
    first = np.asarray(laws)[:, 0]
    assert np.all(np.isfinite(laws)) and np.all(first[:, :7] == 0)
    assert np.any(np.all(first[:, 7:] == 0.5, 1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"vocabulary": 1},
        {"vocabulary": 9.0},
        {"vocabulary": True},
        {"triggers": True},
        {"triggers": 2.5},
        {"triggers": np.int64(8)},
        {"concentration": float("nan")},
        {"concentration": 1e-7},
        {"concentration": 1e7},
        {"concentration": True},
        {"concentration": "1"},
        {"share": float("nan")},
        {"share": -0.1},
        {"share": True},
    ],
)
def test_what_is_no_number_of_the_range_is_refused(wrong):
    (name,) = wrong
    with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
        backcopy.law(jax.random.key(0), **({"vocabulary": 9} | wrong))


def test_lengths_and_tokens_that_are_refused():
    law = backcopy.law(jax.random.key(0), 5, 1)
    for wrong in (0, -1, True, 3.0, "3"):
        with pytest.raises(UsageError, match="length=.* is not allowed: length is"):
            backcopy.draw(jax.random.key(0), law, wrong)
    with pytest.raises(UsageError, match="5 in tokens is not allowed: it is a number from 0 to 4"):
        backcopy.due(law, np.array([0, 5]))
