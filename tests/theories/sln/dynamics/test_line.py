"""Line graphs against networkx, spectra and embeddings against plain numpy, cuts that complete clusters."""

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from jaxdyn.data import graphs
from jaxdyn.theories.sln.dynamics import line

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
