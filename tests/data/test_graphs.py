"""All connected graphs and trees by their counts, random graphs against networkx, edges and distances against plain search."""

import functools
import itertools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data import graphs
from jaxdyn.errors import UsageError
from tests.data.limits import within


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
