"""Random digraphs against breadth-first search with a queue, kind by kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data import digraphs
from jaxdyn.errors import UsageError

NAMES, EDGES, STEPS = 64, 48, 8


@jax.jit
def drawn(key, index, nodes):
    return jax.vmap(lambda k: digraphs.draw(k, index, nodes, names=NAMES, edges=EDGES, steps=STEPS))(jax.random.split(key, 32))


@pytest.mark.parametrize("nodes", [6, 8, 10, 24, 64])
@pytest.mark.parametrize("kind", digraphs.KINDS)
def test_a_graph_is_of_its_kind(kind, nodes):
    graphs = jax.tree.map(np.asarray, drawn(jax.random.key(nodes), digraphs.KINDS.index(kind), nodes))
    roots = set()
    for edges, root, target, other in zip(*graphs, strict=True):
        away = digraphs.distances(edges, root)
        met = set(edges.ravel().tolist())
        assert edges.min() >= 0 and edges.max() < NAMES and len(met | {int(root)}) <= nodes
        assert np.all(edges[:, 0] != edges[:, 1])
        assert int(other) not in away and int(other) in met
        if kind == "no_exit":
            assert away == {root: 0} and root not in met and target == root
            continue
        assert 1 <= away[int(target)] <= STEPS
        roots.add(int(root))
        single = {tuple(e) for e in edges.tolist()}
        if kind == "cycle":
            size = min(nodes // 2, EDGES // 2)
            assert len(single) == 2 * size == len(met) and len(away) == size
        if kind == "dense":
            k = min(nodes - 3, 7)
            assert len(single) == k * (k - 1) + 2 and len(away) == k + 1
            repeated = [e for e in single if np.sum(np.all(edges == e, 1)) > 1]
            assert all(e[0] not in away for e in repeated)
        if kind == "tree":
            assert len(away) >= min(nodes - 1, EDGES - 1)
    assert kind == "no_exit" or len(roots) > 5


def test_sets_against_the_queue():
    rng = np.random.default_rng(0)
    find = jax.jit(lambda e, r: digraphs.within(e, r, 12, 6))
    for _ in range(50):
        edges, root = rng.integers(0, 12, (14, 2)), int(rng.integers(12))
        away = digraphs.distances(edges, root)
        sets = np.asarray(find(jnp.asarray(edges), root))
        for c, found in enumerate(sets):
            assert set(np.flatnonzero(found).tolist()) == {v for v, d in away.items() if d <= c}


def test_the_targets_distance_is_uniform_where_it_can_be():
    graphs = jax.tree.map(np.asarray, drawn(jax.random.key(1), 2, 64))
    away = [digraphs.distances(e, r)[int(t)] for e, r, t, _ in zip(*graphs, strict=True)]
    assert set(range(1, 9)) >= set(away) and len(set(away)) >= 6  # of 32 draws from 8 distances


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match="names=5, edges=48 are not allowed"):
        digraphs.draw(jax.random.key(0), 0, 5, names=5, edges=48, steps=2)
    with pytest.raises(UsageError, match="nodes=70 is not allowed"):
        digraphs.draw(jax.random.key(0), 0, 70, names=64, edges=48, steps=2)
