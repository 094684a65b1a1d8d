"""The Bigram-Backcopy task: rules token by token, and statistics against the chain."""

import jax
import numpy as np
import pytest

from jaxdyn.data import backcopy
from jaxdyn.errors import UsageError


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
