"""Random digraphs against breadth-first search with a queue, kind by kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data import digraphs
from jaxdyn.errors import UsageError
from tests.data.limits import within

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
    with pytest.raises(UsageError, match="names=5 is not allowed: names is at least 6"):
        digraphs.draw(jax.random.key(0), 0, 5, names=5, edges=48, steps=2)
    with pytest.raises(UsageError, match="nodes=70 is not allowed: nodes is at least 6 and at most 64"):
        digraphs.draw(jax.random.key(0), 0, 70, names=64, edges=48, steps=2)


@pytest.mark.slow
@settings(deadline=None, max_examples=8, derandomize=True)
@given(
    names=st.integers(6, 40) | st.just(6),
    edges=st.integers(9, 60) | st.just(9),
    steps=st.integers(1, 50) | st.just(1),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**31 - 1),
)
def test_digraphs_over_the_whole_range_are_of_their_kind(names, edges, steps, share, seed):
    draw = jax.jit(
        jax.vmap(lambda key, kind, n: digraphs.draw(key, kind, n, names=names, edges=edges, steps=steps), (0, None, None))
    )
    nodes = round(6 + share * (names - 6))
    for kind, word in enumerate(digraphs.KINDS):
        with within(60):
            some = jax.tree.map(np.asarray, draw(jax.random.split(jax.random.key(seed), 8), kind, nodes))
        for edge, root, target, other in zip(*some, strict=True):
            away, met = digraphs.distances(edge, int(root)), set(edge.ravel().tolist())
            assert edge.min() >= 0 and edge.max() < names and len(met | {int(root)}) <= nodes and np.all(edge[:, 0] != edge[:, 1])
            assert int(other) in met and int(other) not in away
            assert target == root and len(away) == 1 if word == "no_exit" else 1 <= away[int(target)] <= steps


@pytest.mark.thinned
@pytest.mark.parametrize(
    "sizes",
    [{"names": 4096, "edges": 9, "steps": 1}, {"names": 6, "edges": 4096, "steps": 1}, {"names": 6, "edges": 9, "steps": 4096}],
)
def test_the_largest_digraphs(sizes):
    with within(60):
        g = jax.jit(lambda key: digraphs.draw(key, 1, 6, **sizes))(jax.random.key(0))
    assert 1 <= digraphs.distances(g.edges, int(g.root))[int(g.target)] <= sizes["steps"]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *[("kind", wrong) for wrong in (-1, 5, True, 1.0, "tree", np.int64(9))],
        *[("nodes", wrong) for wrong in (5, 9, 6.5, True, "6", float("nan"), np.int64(99), jnp.int32(99), np.int64(5))],
        *[("names", wrong) for wrong in (5, 4097, 8.0, True, 10**20)],
        *[("edges", wrong) for wrong in (8, 4097, 9.0, True, "9")],
        *[("steps", wrong) for wrong in (0, -1, 4097, 2.0, True)],
    ],
)
def test_numbers_outside_of_their_range_are_refused(name, wrong):
    numbers = {"kind": 1, "nodes": 6, "names": 8, "edges": 9, "steps": 2} | {name: wrong}
    with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
        digraphs.draw(jax.random.key(0), numbers.pop("kind"), numbers.pop("nodes"), **numbers)


def test_traced_numbers_outside_are_moved_into_the_range():
    same = lambda a, b: jax.tree.map(np.testing.assert_array_equal, drawn(jax.random.key(0), *a), drawn(jax.random.key(0), *b))  # noqa: E731
    same((1, 99), (1, 64))
    same((1, -3), (1, 6))
    same((77, 8), (4, 8))
    same((-1, 8), (0, 8))
