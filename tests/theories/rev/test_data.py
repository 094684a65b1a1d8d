"""Sequences of the reversal and the chain-of-thought task: which facts are in training, and which are not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.rev import one_layer

P, T, M = 5, 4, 40


def sampled(task, seed):
    facts = one_layer.sample(jax.random.key(seed), task, M, P, T)
    return tuple(map(tuple, np.asarray(facts.train))), tuple(map(tuple, np.asarray(facts.test))), int(facts.arrow)


@pytest.mark.parametrize("seed", range(4))
def test_reversal_trains_both_directions_or_exactly_one(seed):
    train, test, arrow = sampled("reversal", seed)
    assert len(set(train)) == len(train) == 2 * P + T and len(test) == T
    relations = {r for _, r, _ in train + test}
    assert len(relations) == 2 and arrow in relations
    other = {r: (relations - {r}).pop() for r in relations}
    for x, r, y in test:
        assert (x, r, y) not in train and (y, other[r], x) in train
    whole = [f for f in train if (f[2], other[f[1]], f[0]) in train]
    assert len(whole) == 2 * P
    entities = {t for x, _, y in train + test for t in (x, y)}
    assert len(entities) == 2 * (P + T) and not entities & relations
    assert len({x for x, _, _ in train}) == len(train)  # every row has one target


def test_the_direction_that_is_seen_is_a_fair_coin():
    forward = [f[1] == arrow for seed in range(40) for train, _, arrow in [sampled("reversal", seed)] for f in train[-T:]]
    assert 0.35 < np.mean(forward) < 0.65  # 160 draws: 4 standard errors


@pytest.mark.parametrize("seed", range(4))
def test_chains_train_two_steps_and_hold_out_the_indirect_one(seed):
    train, test, arrow = sampled("cot", seed)
    assert len(set(train)) == len(train) == 3 * P + 2 * T and len(test) == T
    direct = {x: y for x, r, y in train if r == arrow}
    for a, r, c in test:
        assert r != arrow and (a, r, c) not in train and direct[direct[a]] == c
    indirect = [f for f in train if f[1] != arrow]
    assert len(indirect) == P and all(direct[direct[a]] == c for a, _, c in indirect)


@pytest.mark.parametrize("task", one_layer.TASKS)
def test_index_tables(task):
    train, test, arrow = sampled(task, 0)
    begins = [f[0] for f in train]
    single = one_layer.single_target(task, P, T)
    assert sorted(single) == [i for i, x in enumerate(begins) if begins.count(x) == 1]
    seen_in_test = {x for x, _, y in test} | {y for _, _, y in test}
    chain = {y for x, _, y in train if x in seen_in_test}
    of_test = [begins[i] in seen_in_test | chain for i in single]
    np.testing.assert_array_equal(one_layer.of_test(task, P, T), of_test)
    expected = [task == "cot" and f[1] != arrow for f in train]
    np.testing.assert_array_equal(one_layer.indirect(task, P, T), expected)


def test_shares_among_sampled_sequences(x64):
    facts = one_layer.sample(jax.random.key(0), "cot", M, P, T)
    of_chain, owner = one_layer.indirect("cot", P, T), one_layer.owners("cot", P, T)
    weights = jnp.where(of_chain, 0.5, 1.0) * (owner != 1)
    sequences, shares = one_layer.training_shares(facts, jnp.float64(0.0), weights)
    assert len(sequences) == 3 * P + 3 * T
    np.testing.assert_allclose(shares.sum(), 1)
    np.testing.assert_allclose(shares[-T:], 0)
    np.testing.assert_allclose(shares[: 3 * P + 2 * T] / shares[0], weights)


@pytest.mark.parametrize("task", one_layer.TASKS)
def test_owners_are_the_training_indices(task):
    train, _, _ = sampled(task, 0)
    owner = one_layer.owners(task, P, T)
    assert len(owner) == len(train)
    for i in range(P):
        tokens = {token for k in np.flatnonzero(owner == i) for token in (train[k][0], train[k][2])}
        rest = {token for k in np.flatnonzero(owner != i) for token in (train[k][0], train[k][2])}
        assert len(tokens) == (2 if task == "reversal" else 3) and not tokens & rest


def test_unknown_task():
    with pytest.raises(jd.UsageError, match="reversal, cot"):
        one_layer.needed("other", 1, 1)
