"""Resistances against the pseudo-inverse, steps against networkx, and the sum on one tree by hand."""

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np

from jaxdyn.data import graphs
from jaxdyn.theories.sln.dynamics import line, resistance

# One program each: by itself every operation would be compiled.
edges_of, distances = jax.jit(graphs.edges_of, static_argnums=1), jax.jit(graphs.distances)
adjacency, resistances = jax.jit(line.adjacency, static_argnums=1), jax.jit(resistance.resistances, static_argnums=1)
steps = jax.jit(resistance.steps)


def test_resistances_and_steps():
    with jax.enable_x64(True):
        for a in graphs.connected(5)[::4]:
            padded = jnp.asarray(graphs.stacked((a,), 6)[0])
            e = edges_of(padded, 12)
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
        found = np.asarray(jax.jit(resistance.along)(edges_of(g, 4), g, distances(g)))
    np.testing.assert_allclose(found[0], [0, 2 / 3, 2 / 3, 2 / 3 + 1], atol=1e-15)
