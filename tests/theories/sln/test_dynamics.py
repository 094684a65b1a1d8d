"""Line graphs, resistances and navigation."""

import functools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from jaxdyn.data import graphs
from jaxdyn.theories.sln.dynamics import line, navigate, resistance

# Line graphs against networkx, spectra and embeddings against plain numpy, cuts that complete clusters.

MOST = 12


edges_of = jax.jit(graphs.edges_of, static_argnums=1)  # as one program each: by itself every operation would be compiled


spectrum, squared_distances = jax.jit(line.spectrum, static_argnums=1), jax.jit(line.squared_distances, static_argnums=1)


SMALL = [a for a in graphs.connected(5) if a.sum() // 2 <= 10]


def edges(a):
    return edges_of(jnp.asarray(graphs.stacked((a,), 6)[0]), MOST)


@pytest.mark.parametrize("index", [0, 7, 20])
def test_line_graph(index):
    a = SMALL[index]
    e = edges(a)
    ends = [tuple(x) for x in np.asarray(e.ends)[np.asarray(e.real)].tolist()]
    expected = nx.to_numpy_array(nx.line_graph(nx.from_numpy_array(a)), nodelist=ends, dtype=bool)
    ours = np.asarray(line.adjacency(e, 6))
    assert np.array_equal(ours[: len(ends), : len(ends)], expected) and not ours[len(ends) :].any()


def plain(a, walk, power, k, complete=True):
    """Squared distances from the definition: unpadded, eigenvectors one by one."""
    g = nx.line_graph(nx.from_numpy_array(a))
    order = sorted(tuple(sorted(e)) for e in g)
    adj = nx.to_numpy_array(g, nodelist=[e if e in g else e[::-1] for e in order])
    d = adj.sum(1)
    values, vectors = np.linalg.eigh(np.eye(len(d)) - adj / np.sqrt(np.outer(d, d)))
    stop = min(k, len(d) - 1)
    while complete and stop + 1 < len(d) and values[stop + 1] - values[stop] < 1e-8:
        stop += 1
    x = vectors[:, 1 : stop + 1] * values[1 : stop + 1] ** -power
    x = x / np.sqrt(d)[:, None] if walk else x
    return ((x[:, None] - x) ** 2).sum(-1)


@pytest.mark.thinned
@pytest.mark.parametrize("name", line.EMBEDDINGS)
def test_embeddings(name):
    e = line.EMBEDDINGS[name]
    with jax.enable_x64(True):
        squared = jax.jit(lambda x: line.squared_distances(line.spectrum(x, 6), e))
        for a in SMALL:
            m = a.sum() // 2
            ours = np.asarray(squared(edges(a)))[:m, :m]
            np.testing.assert_allclose(ours, plain(a, e.walk, e.power, int(min(e.vectors, 99))), atol=1e-10)


def test_a_cut_within_a_cluster_depends_on_the_labels():
    square = np.roll(np.eye(4, dtype=bool), 1, 0) | np.roll(np.eye(4, dtype=bool), -1, 0)
    with jax.enable_x64(True):
        s = spectrum(edges(square), 6)
        whole = np.asarray(squared_distances(s, line.Embedding(0.0, 0.0, 1.0)))[:4, :4]
        cut = np.asarray(squared_distances(s, line.Embedding(0.0, 0.0, 1.0, 0.0)))[:4, :4]
    np.testing.assert_allclose(np.unique(np.round(whole, 12)), [0, 1, 2])
    assert not np.allclose(cut, np.asarray(whole))


def test_resistance_of_a_path():
    """Resistances of the line graph of a path, itself a path, are the numbers of steps."""
    with jax.enable_x64(True):
        path = np.eye(6, k=1, dtype=bool) | np.eye(6, k=-1, dtype=bool)
        e = edges_of(jnp.asarray(path), 5)
        d = squared_distances(spectrum(e, 6), line.EMBEDDINGS["rw, 1/sqrt, all"])
    np.testing.assert_allclose(d, abs(np.subtract.outer(range(5), range(5))), atol=1e-12)


# Navigation, its exact probability and the baseline, against plain recursions and sampling.

SIZE, NAVIGATE_MOST = 7, 21


SOME = [a for n in (4, 5, 6) for a in graphs.connected(n)][::9]


def navigate_edges(a):
    return graphs.edges_of(jnp.asarray(graphs.stacked((a,), SIZE)[0]), NAVIGATE_MOST)


def plain_next(a, between, ends, i, t):
    """Tied next vertices, by loops."""
    number = {tuple(e): k for k, e in enumerate(ends)}
    edge = lambda u, v: number[min(u, v), max(u, v)]  # noqa: E731
    cost = {int(j): min(between[edge(i, j), edge(k, t)] for k in np.flatnonzero(a[t])) for j in np.flatnonzero(a[i])}
    least = min(cost.values())
    return [j for j, c in cost.items() if c <= least + 1e-9]


def plain_success(a, choices):
    away = dict(nx.all_pairs_shortest_path_length(nx.from_numpy_array(a)))

    @functools.cache
    def p(i, t):
        js = choices(i, t) if i != t else []
        return 1.0 if i == t else float(np.mean([p(j, t) if away[j][t] == away[i][t] - 1 else 0.0 for j in js]))

    return np.array([[p(i, t) for t in range(len(a))] for i in range(len(a))])


@pytest.mark.thinned
@pytest.mark.parametrize("name", ["sym, 1, 3", "sym, 1, all", "rw, 1/lam, all"])
def test_success(name):
    with jax.enable_x64(True):

        @jax.jit
        def ours(e, g):
            between = line.squared_distances(line.spectrum(e, SIZE), line.EMBEDDINGS[name])
            away = graphs.distances(g)
            return between, *navigate.success(navigate.tied(navigate.costs(between, e, SIZE)), away)

        for a in SOME:
            e = navigate_edges(a)
            n, ends = len(a), np.asarray(e.ends)[np.asarray(e.real)].tolist()
            between, p, worst = map(np.asarray, ours(e, jnp.asarray(graphs.stacked((a,), SIZE)[0])))
            choices = functools.cache(lambda i, t, a=a, b=between, ends=ends: plain_next(a, b, ends, i, t))
            np.testing.assert_allclose(p[:n, :n], plain_success(a, choices), atol=1e-12)
            assert np.all((worst[:n, :n] == 1) == (p[:n, :n] > 1 - 1e-12))


def test_chance():
    a = SOME[4]
    g = jnp.asarray(graphs.stacked((a,), SIZE)[0])
    with jax.enable_x64(True):
        ours = np.asarray(navigate.chance(g, graphs.distances(g)))
    np.testing.assert_allclose(ours[: len(a), : len(a)], plain_success(a, lambda i, t: np.flatnonzero(a[i]).tolist()), atol=1e-12)


def test_ground_states():
    """Against eigenvectors of each component."""
    with jax.enable_x64(True):
        find = jax.jit(navigate.ground_states)
        for a in SOME:
            n = len(a)
            cost = np.asarray(find(jnp.asarray(graphs.stacked((a,), SIZE)[0])))[:n, :n, :n]
            laplacian = np.diag(a.sum(1)) - a.astype(float)
            for t in range(n):
                rest = nx.from_numpy_array(a)
                rest.remove_node(t)
                for part in map(sorted, nx.connected_components(rest)):
                    phi = abs(np.linalg.eigh(laplacian[np.ix_(part, part)])[1][:, 0])
                    for i in part:
                        for j, value in zip(part, phi / phi.max(), strict=True):
                            assert cost[i, j, t] == np.inf if not a[i, j] else abs(cost[i, j, t] - value) < 1e-9
                        assert not a[i, t] or cost[i, t, t] == 0


# Resistances against the pseudo-inverse, steps against networkx, and the sum on one tree by hand.

# One program each: by itself every operation would be compiled.
resistance_edges_of, distances = jax.jit(graphs.edges_of, static_argnums=1), jax.jit(graphs.distances)


adjacency, resistances = jax.jit(line.adjacency, static_argnums=1), jax.jit(resistance.resistances, static_argnums=1)


steps = jax.jit(resistance.steps)


def test_resistances_and_steps():
    with jax.enable_x64(True):
        for a in graphs.connected(5)[::4]:
            padded = jnp.asarray(graphs.stacked((a,), 6)[0])
            e = resistance_edges_of(padded, 12)
            m = int(np.sum(e.real))
            adj = np.asarray(adjacency(e, 6))[:m, :m].astype(float)
            inverse = np.linalg.pinv(np.diag(adj.sum(1)) - adj)
            d = np.diag(inverse)
            ours = np.asarray(resistances(e, 6))
            np.testing.assert_allclose(ours[:m, :m], d[:, None] + d - 2 * inverse, atol=1e-12)
            assert not ours[m:].any() and not ours[:, m:].any()
            away = np.asarray(steps(e, distances(padded)))
            for i, found in nx.all_pairs_shortest_path_length(nx.from_numpy_array(adj)):
                assert all(away[i, j] == s for j, s in found.items())


def test_sum_along_a_path_of_a_star_with_a_tail():
    """Edges 01, 02, 03 at a vertex of degree 3, and 34: between 01 and 34 lie 0 (degree 3) and 3 (degree 2)."""
    a = np.zeros((5, 5), bool)
    for i, j in ((0, 1), (0, 2), (0, 3), (3, 4)):
        a[i, j] = a[j, i] = True
    g = jnp.asarray(a)
    with jax.enable_x64(True):
        found = np.asarray(jax.jit(resistance.along)(resistance_edges_of(g, 4), g, distances(g)))
    np.testing.assert_allclose(found[0], [0, 2 / 3, 2 / 3, 2 / 3 + 1], atol=1e-15)
