"""Graphs, directed and not, and what is reached in them."""

import collections
import functools
import itertools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data import digraphs, graphs, reachability
from jaxdyn.data.reachability import Sizes
from jaxdyn.errors import UsageError
from tests.data.limits import within

# All connected graphs and trees by their counts, random graphs against networkx, edges and distances against plain search.


@pytest.mark.parametrize(("vertices", "count"), [(2, 1), (3, 2), (4, 6), (5, 21), (6, 112), (7, 853)])
def test_counts_of_connected_graphs(vertices, count):
    found = graphs.connected(vertices)
    assert len(found) == count
    assert all(nx.is_connected(nx.from_numpy_array(a)) and not a.diagonal().any() and np.array_equal(a, a.T) for a in found)


def test_graphs_from_smaller_ones_are_those_of_the_atlas():
    ours, atlas = graphs.extended(graphs.connected(5)), graphs.connected(6)
    assert len(ours) == len(atlas) == 112
    assert sorted(graphs.signatures(np.stack(ours))) == sorted(graphs.signatures(np.stack(atlas)))


@pytest.mark.slow
def test_count_with_eight_vertices():
    assert len(graphs.connected(8)) == 11117


@pytest.mark.parametrize(("vertices", "count"), [(2, 1), (4, 2), (5, 3), (6, 6), (7, 11), (8, 23), (9, 47)])
def test_counts_of_trees(vertices, count):
    found = graphs.trees(vertices)
    assert len(found) == count
    assert all(nx.is_tree(nx.from_numpy_array(a)) for a in found)


def test_sizes_that_are_refused():
    with pytest.raises(UsageError, match="at least 1 and at most 8"):
        graphs.connected(9)
    with pytest.raises(UsageError, match="at least 2"):
        graphs.trees(1)


@pytest.mark.thinned
@pytest.mark.parametrize("kind", graphs.KINDS)
@pytest.mark.parametrize("vertices", [4, 7])
def test_random_graphs(kind, vertices):
    draw = jax.jit(jax.vmap(lambda k: graphs.draw(k, graphs.KINDS.index(kind), float(vertices), 0.3, size=9)))
    seen = set()
    for a in np.asarray(draw(jax.random.split(jax.random.key(0), 40))):
        graph = nx.from_numpy_array(a[:vertices, :vertices])
        assert np.array_equal(a, a.T) and not a.diagonal().any() and not a[vertices:].any()
        assert nx.number_connected_components(graph) == (2 if kind == "disconnected" else 1)
        edges = graph.number_of_edges()
        wanted = {"tree": vertices - 1, "tree+3": min(vertices + 2, vertices * (vertices - 1) // 2), "disconnected": vertices - 2}
        assert edges == wanted.get(kind, edges)
        seen.add(a.tobytes())
    assert len(seen) > 5 or vertices == 4


def test_random_graphs_have_their_density():
    found = jax.jit(jax.vmap(lambda k: graphs.draw(k, 0, 9.0, 0.7, size=9)))(jax.random.split(jax.random.key(1), 400))
    assert abs(np.mean(np.sum(found, (1, 2)) / 72) - 0.7) < 0.02


def test_edges_and_distances():
    edges_of, distances = jax.jit(graphs.edges_of, static_argnums=1), jax.jit(graphs.distances)
    for a in graphs.connected(5):
        padded = jnp.asarray(graphs.stacked((a,), 7)[0])
        edges = edges_of(padded, 12)
        listed = {tuple(e) for e in np.asarray(edges.ends)[np.asarray(edges.real)].tolist()}
        assert listed == set(nx.from_numpy_array(a).edges)
        away = np.asarray(distances(padded))
        for s, found in nx.all_pairs_shortest_path_length(nx.from_numpy_array(a)):
            assert all(away[s, t] == d for t, d in found.items())
        assert np.all(away[:5, 5:] == 7)


def test_relabelled():
    a = jnp.asarray(graphs.connected(4)[1])
    order = jnp.array([2, 0, 3, 1])
    b = graphs.relabelled(a, order)
    assert all(b[i, j] == a[order[i], order[j]] for i in range(4) for j in range(4))


@functools.cache
def drawing(size):
    """Compiled draws of one size, and their kind, vertices and density traced."""
    draw = jax.jit(lambda key, kind, n, p: graphs.draw(key, kind, n, p, size=size))
    return lambda seed, *numbers: np.asarray(draw(jax.random.key(seed), *numbers))


@pytest.mark.slow
@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    seed=st.integers(0, 2**31 - 1),
    kind=st.integers(0, len(graphs.KINDS) - 1),
    size=st.sampled_from([4, 5, 9, 17]),
    share=st.floats(0, 1),
    density=st.floats(0, 1) | st.sampled_from([0.0, 1.0, 1e-30, 0.05]),
)
def test_graphs_over_the_whole_range_are_of_their_kind(seed, kind, size, share, density):
    vertices = round(4 + share * (size - 4))
    with within(60):
        a = drawing(size)(seed, kind, vertices, density)
    assert np.array_equal(a, a.T) and not a.diagonal().any() and not a[vertices:].any()
    parts = nx.number_connected_components(nx.from_numpy_array(a[:vertices, :vertices]))
    assert parts == (2 if graphs.KINDS[kind] == "disconnected" else 1)


def test_traced_numbers_outside_are_moved_into_the_range():
    for (kind, n), (inside, there) in (
        ((-3, 9), (0, 9)),
        ((99, 9), (3, 9)),
        ((1, 0), (1, 4)),
        ((1, 50), (1, 9)),
        ((2, -5), (2, 4)),
    ):
        np.testing.assert_array_equal(drawing(9)(1, kind, n, 0.5), drawing(9)(1, inside, there, 0.5))


@pytest.mark.slow
def test_graphs_that_are_hardly_ever_connected_are_refused():
    key = jax.random.key(0)
    for density in (0, 0.0, 1e-30, 0.05, np.float32(0.05), jnp.float32(0.05)):
        with pytest.raises(
            UsageError, match=f"density={float(density)} is not allowed: of 12 vertices, fewer than one such graph in 250"
        ):
            graphs.draw(key, 0, 12.0, density, size=12)
    assert graphs.chance(12, 0.09) > graphs.RARE > graphs.chance(12, 0.05)
    tree = graphs.draw(key, 1, 12, 0.0, size=12)  # has no use for a density
    assert nx.is_tree(nx.from_numpy_array(np.asarray(tree)))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *[("kind", wrong) for wrong in (-1, 4, True, 1.0, "tree", None)],
        *[("vertices", wrong) for wrong in (3, 13, 4.5, True, "5", None, float("nan"), np.int64(99), jnp.int32(99))],
        *[("density", wrong) for wrong in (-0.1, 1.5, True, "0.5", float("nan"), float("inf"))],
        *[("size", wrong) for wrong in (3, 257, True, 12.0, 10**20, "12")],
    ],
)
def test_numbers_outside_of_their_range_are_refused(name, wrong):
    numbers = {"kind": 2, "vertices": 4, "density": 0.5, "size": 12} | {name: wrong}
    with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
        graphs.draw(jax.random.key(0), **numbers)


@pytest.mark.thinned
@pytest.mark.parametrize("kind", [int, float, np.int64, np.float32, jnp.float32])
def test_numbers_of_any_library_draw_the_same_graph(kind):
    base = graphs.draw(jax.random.key(3), 0, 6, 0.5, size=8)
    np.testing.assert_array_equal(graphs.draw(jax.random.key(3), 0, kind(6), np.float64(0.5), size=np.int64(8)), base)


@settings(deadline=None, max_examples=30, derandomize=True)
@given(n=st.integers(1, 5), p=st.floats(0, 1))
def test_the_chance_to_be_connected_is_the_sum_over_all_graphs(n, p):
    pairs = list(itertools.combinations(range(n), 2))
    total = 0.0
    for edges in itertools.chain.from_iterable(itertools.combinations(pairs, k) for k in range(len(pairs) + 1)):
        graph = nx.empty_graph(n)
        graph.add_edges_from(edges)
        total += nx.is_connected(graph) * p ** len(edges) * (1 - p) ** (len(pairs) - len(edges))
    assert graphs.chance(n, p) == pytest.approx(total, abs=1e-12)


def test_the_chance_of_the_largest_graphs():
    assert graphs.chance(256, 0.0) == 0 and graphs.chance(256, 1.0) == pytest.approx(1)
    assert np.all(np.diff([graphs.chance(256, p) for p in np.linspace(0, 0.1, 30)]) >= 0)
    n, p = 256, (np.log(256) + 1) / 256  # Erdős and Rényi: the limit is exp(-exp(-1))
    assert graphs.chance(n, p) == pytest.approx(np.exp(-np.exp(-1)), abs=0.03)


@pytest.mark.parametrize("wrong", [0, -1, 9, 10**20, True, 3.0, "3", None, float("nan")])
def test_numbers_of_vertices_that_are_refused(wrong):
    with pytest.raises(UsageError, match="vertices=.* is not allowed: vertices is"):
        graphs.connected(wrong)
    with pytest.raises(UsageError, match="vertices=.* is not allowed: vertices is"):
        graphs.trees(19 if wrong == 9 else wrong)
    assert graphs.connected(np.int64(3)) is graphs.connected(3) and len(graphs.connected(1)) == 1


@pytest.mark.slow
def test_the_largest_trees():
    assert len(graphs.trees(graphs.TREES)) == 123_867 == nx.number_of_nonisomorphic_trees(graphs.TREES)


def test_the_atlas_ends_where_it_is_taken_to_end():
    assert max(len(g) for g in nx.graph_atlas_g()) == graphs.ATLAS


def test_rows_and_matrices_without_room_are_refused():
    full = ~np.eye(5, dtype=bool)
    with pytest.raises(UsageError, match="most=9 is not allowed: most is at least 10"):
        graphs.edges_of(full, 9)
    assert int(jax.jit(graphs.edges_of, static_argnums=1)(full, 9).real.sum()) == 9
    known = jnp.asarray(full)
    assert int(jax.jit(lambda: graphs.edges_of(known, 10))().real.sum()) == 10, "a known graph in a traced program"
    with pytest.raises(UsageError, match="size=4 is not allowed: size is at least 5"):
        graphs.stacked((full,), 4)


# Random digraphs against breadth-first search with a queue, kind by kind.


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
def test_numbers_outside_of_their_range_are_refused_of_digraphs(name, wrong):
    numbers = {"kind": 1, "nodes": 6, "names": 8, "edges": 9, "steps": 2} | {name: wrong}
    with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
        digraphs.draw(jax.random.key(0), numbers.pop("kind"), numbers.pop("nodes"), **numbers)


def test_traced_numbers_outside_are_moved_into_the_range_of_digraphs():
    same = lambda a, b: jax.tree.map(np.testing.assert_array_equal, drawn(jax.random.key(0), *a), drawn(jax.random.key(0), *b))  # noqa: E731
    same((1, 99), (1, 64))
    same((1, -3), (1, 6))
    same((77, 8), (4, 8))
    same((-1, 8), (0, 8))


# Small problems against a queue: which candidate is reached, levels, tokens, and edits that turn the answer.


SIZES = Sizes(3, 2)
draw = jax.jit(reachability.draw, static_argnums=1)  # as one program: by itself every operation would be compiled


def problems(count=40, sizes=SIZES):
    return [jax.device_get(draw(jax.random.key(i), sizes)) for i in range(count)]


@pytest.mark.parametrize("edit", [None, reachability.redirected, reachability.exchanged])
def test_a_queue_reaches_the_target_alone(edit):
    edited = edit and jax.jit(edit)
    for before in problems():
        p = before if edit is None else edited(before)
        away = digraphs.distances(p.edges, int(p.roots[0]))
        target, negative = (int(v) for v in p.candidates)
        assert away[target] == SIZES.hops and negative not in away
        if edit is not None:
            assert target == int(before.candidates[1])
            changed = int(np.sum(np.any(np.asarray(p.edges) != before.edges, 1)))
            assert changed == (1 if edit is reachability.redirected else 2)


def test_both_candidates_look_alike():
    for p in problems():
        away = digraphs.distances(p.edges, int(p.roots[1]))
        assert away[int(p.candidates[1])] == SIZES.hops and int(p.candidates[0]) not in away
        parents = collections.Counter(p.edges[:, 1].tolist())
        assert set(parents.values()) == {1} and len(parents) == SIZES.nodes - 2
        assert sorted({*parents, *p.roots.tolist()}) == list(range(SIZES.nodes))


def test_path_and_levels():
    levels = jax.jit(reachability.levels, static_argnums=1)
    for p in problems():
        edges = {tuple(e) for e in p.edges.tolist()}
        assert p.path[0] == p.roots[0] and p.path[-1] == p.candidates[0]
        assert all(pair in edges for pair in zip(p.path[:-1].tolist(), p.path[1:].tolist(), strict=True))
        away = digraphs.distances(p.edges, int(p.roots[0]))
        expected = [away.get(v, SIZES.hops + 1) for v in range(SIZES.nodes)]
        assert levels(p, SIZES).tolist() == expected


def test_tokens():
    sizes = Sizes(1, 1)  # two edges, four names
    p = draw(jax.random.key(3), sizes)
    (a, b), (c, d) = p.edges.tolist()
    x, y = p.candidates.tolist() if bool(p.straight) else p.candidates.tolist()[::-1]
    tokens = jax.jit(reachability.render, static_argnums=1)(p, sizes).tolist()
    assert tokens == [4, a, b, 5, c, d, 6, x, y, 7, int(p.roots[0])] and len(tokens) == sizes.prompt
    assert reachability.token(4, "[A]") == 8 and sizes.vocabulary == 10


@pytest.mark.slow
def test_shown_order_and_place_of_the_answer_say_nothing():
    some = problems(200)
    assert 70 < sum(bool(p.straight) for p in some) < 130
    larger = sum(int(p.candidates[0]) > int(p.candidates[1]) for p in some)
    assert 70 < larger < 130


def test_wrong_sizes_are_refused():
    with pytest.raises(UsageError, match="hops is at least 1"):
        Sizes(0, 2)


@pytest.mark.slow
@settings(deadline=None, max_examples=6, derandomize=True)
@given(hops=st.integers(1, 6), breadth=st.integers(1, 5), seed=st.integers(0, 2**31 - 1))
def test_draws_over_the_whole_range(hops, breadth, seed):
    sizes = Sizes(hops, breadth)
    with within(60):
        p = draw(jax.random.key(seed), sizes)
    away = digraphs.distances(p.edges, int(p.roots[0]))
    assert away[int(p.candidates[0])] == hops and int(p.candidates[1]) not in away
    assert len(p.edges) == sizes.edges and set(np.asarray(p.edges).ravel().tolist()) <= set(range(sizes.nodes))


def test_the_ends_of_the_range():
    with within(60):
        p = draw(jax.random.key(0), Sizes(np.int64(1), (reachability.MOST - 2) // 2))
    assert len(p.edges) == reachability.MOST - 2
    with pytest.raises(UsageError, match=f"there are at most {reachability.MOST} nodes"):
        Sizes(2, reachability.MOST)


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, 2.5, "2", None, float("nan")])
def test_sizes_that_are_no_counts_are_refused(wrong):
    for name in ("hops", "breadth"):
        with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
            Sizes(**{name: wrong})
    with pytest.raises(UsageError, match="special=.* is not allowed: it is one of <eos>"):
        reachability.token(5, "<bos>")
