"""Greedy choices and enumeration against loops over Python sets."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.h2o.dynamics import greedy

COVER = np.random.default_rng(0).uniform(size=(9, 6))


def value(chosen):
    return jnp.sum(jnp.max(jnp.where(chosen, COVER, 0), -1))


def worth(chosen):
    return COVER[:, sorted(chosen)].max(1).sum() if chosen else 0.0


def test_against_sets(x64):
    table = greedy.subsets(6, 3)
    assert table.shape == (20, 6) and set(table.sum(1)) == {3}
    added, kept = set(), set()
    for _ in range(3):
        added.add(max(set(range(6)) - added, key=lambda v: worth(added | {v})))
    np.testing.assert_array_equal(np.flatnonzero(greedy.add(value, 6, 3)), sorted(added))
    path, values = greedy.evict(lambda c, _: value(c), 6, 3), jnp.stack([value(row) for row in table])
    best = np.asarray(greedy.best(values, table))
    for i in range(6):
        kept.add(i)
        if len(kept) > 3:
            kept.remove(max(kept, key=lambda v: worth(kept - {v})))
        np.testing.assert_array_equal(np.flatnonzero(path[i]), sorted(kept))
        if i >= 2:
            expected = max(worth(set(c)) for c in itertools.combinations(range(i + 1), 3))
            assert best[i] == pytest.approx(expected, rel=1e-12)
    assert np.all(best[:2] == -np.inf)


def test_the_guarantee_falls_to_its_limit():
    assert greedy.guarantee(1) == 1 and greedy.guarantee(2) == 0.75
    assert greedy.guarantee(10_000) == pytest.approx(1 - np.exp(-1), abs=1e-4)
