"""Navigation, its exact probability and the baseline, against plain recursions and sampling."""

import functools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from jaxdyn.data import graphs
from jaxdyn.theories.sln.dynamics import line, navigate

SIZE, MOST = 7, 21
SOME = [a for n in (4, 5, 6) for a in graphs.connected(n)][::9]


def edges(a):
    return graphs.edges_of(jnp.asarray(graphs.stacked((a,), SIZE)[0]), MOST)


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


@pytest.mark.parametrize("name", ["sym, 1, 3", "sym, 1, all", "rw, 1/lam, all"])
def test_success(name):
    with jax.enable_x64(True):

        @jax.jit
        def ours(e, g):
            between = line.squared_distances(line.spectrum(e, SIZE), line.EMBEDDINGS[name])
            away = graphs.distances(g)
            return between, *navigate.success(navigate.tied(navigate.costs(between, e, SIZE)), away)

        for a in SOME:
            e = edges(a)
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
