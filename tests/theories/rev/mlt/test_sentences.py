"""Sequences of words against sets in plain Python."""

import jax
import numpy as np
import pytest

from jaxdyn.theories.rev.mlt import sentences

sample = jax.jit(sentences.sample, static_argnums=(1, 2, 3))


def sampled(task, vocabulary, word=1, seed=0):
    facts = sample(jax.random.key(seed), task, vocabulary, word)
    size = sentences.sizes(task, vocabulary, word)
    sequences = [tuple(x) for x in np.asarray(facts.sequences).tolist()]
    assert len(sequences) == size.train + size.validation and len(sequences[0]) == size.length
    return facts, size, sequences[: size.train], sequences[size.train :]


def names(facts):
    """The words of each member, as lists of tuples."""
    return [[tuple(w) for w in member] for member in np.asarray(facts.words).tolist()]


@pytest.mark.parametrize(
    ("task", "vocabulary", "word", "train", "held"),
    [
        ("reversal", 800, 1, 340, 60),
        ("reversal", 800, 2, 340, 60),
        ("reversal", 800, 3, 250, 50),
        ("cot", 800, 1, 540, 60),
        ("relevant", 800, 1, 1600, 50),
        ("context", 400, 1, 700, 300),
    ],
)
def test_published_numbers(task, vocabulary, word, train, held):
    size = sentences.sizes(task, vocabulary, word)
    assert (size.train, size.validation) == (train, held)
    assert len(sentences.owners(task, vocabulary, word)) == train + held


@pytest.mark.parametrize("word", [1, 2])
def test_reversal_holds_out_one_direction_of_each_validation_pair(word):
    v = 80
    facts, size, train, held = sampled("reversal", v, word)
    a, b = names(facts)
    assert len(set(a) | set(b)) == 2 * (v // 4) and all(0 <= t < v for w in a + b for t in w)
    there = [(*x, v, *y) for x, y in zip(a, b, strict=True)]
    back = [(*y, v + 1, *x) for x, y in zip(a, b, strict=True)]
    p = size.train_facts
    assert len(set(train)) == len(train) and set(there[:p] + back[:p]) <= set(train)
    for i, forward in enumerate(np.asarray(facts.forward)):
        known, unseen = (there, back) if forward else (back, there)
        assert known[p + i] in train and held[i] == unseen[p + i] and held[i] not in train
    assert 0 < np.mean(facts.forward) < 1


def test_chains_hold_out_the_indirect_step():
    v = 40
    facts, size, train, held = sampled("cot", v)
    a, b, c = ([w[0] for w in member] for member in names(facts))
    assert len({*a, *b, *c}) == 3 * (v // 4)
    p, direct = size.train_facts, []
    for x, y, z in zip(a, b, c, strict=True):
        direct += [(x, v, y), (y, v, z)]
    indirect = [(x, v + 1, z) for x, z in zip(a, c, strict=True)]
    assert set(train) == set(direct + indirect[:p]) and held == indirect[p:]


def test_relevant_tokens_are_three_letters_and_one_index_a_triple():
    facts, size, train, held = sampled("relevant", 32)
    names_ = np.asarray(facts.words)
    assert all(len(set(names_[r, :, 0].tolist())) == 1 for r in range(3)) and len(set(names_[:, 0, 0].tolist())) == 3
    index = names_[0, :, 1]
    assert (names_[:, :, 1] == index).all() and len(set(index.tolist())) == size.train_facts + size.validation_facts
    assert not {x[1] for x in held} & {x[1] for x in train if x[2] == 33}


def test_in_context_every_x_has_seven_of_ten_y_in_training():
    _, size, train, held = sampled("context", 40)
    assert all(s[0] == s[6] and s[2] == s[4] and (s[1], s[3], s[5]) == (40, 41, 42) for s in train + held)
    for part, n in ((train, 7), (held, 3)):
        count = {x: sum(s[0] == x for s in part) for x in {s[0] for s in part}}
        assert len(count) == 10 and set(count.values()) == {n}
    assert len({(s[0], s[2]) for s in train + held}) == 100 and len({s[2] for s in train + held}) == 10


def test_subset_is_uniform_and_without_repetition():
    many = np.asarray(jax.jit(jax.vmap(lambda k: sentences.subset(k, 6, 3)))(jax.random.split(jax.random.key(0), 6000)))
    assert (np.sort(many, 1)[:, 1:] > np.sort(many, 1)[:, :-1]).all() and many.min() == 0 and many.max() == 5
    _, count = np.unique(many, axis=0, return_counts=True)
    assert len(count) == 120 and ((count - 50) ** 2 / 50).sum() < 119 + 4 * (2 * 119) ** 0.5  # chi-square, 119 degrees of freedom
