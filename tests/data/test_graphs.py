"""All connected graphs and trees by their counts, random graphs against networkx, edges and distances against plain search."""

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from jaxdyn.data import graphs
from jaxdyn.errors import UsageError


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
    with pytest.raises(UsageError, match="between 1 and 8"):
        graphs.connected(9)
    with pytest.raises(UsageError, match="at least 2"):
        graphs.trees(1)


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
