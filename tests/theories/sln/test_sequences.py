"""Problems against networkx, every path against its definition, and the split of graphs."""

import jax
import networkx as nx
import numpy as np
import pytest

from jaxdyn.data import graphs
from jaxdyn.theories.sln import sequences as q

SIZE, MOST = 6, 15


def problems(count):
    table = [a for n in (3, 5, 6) for a in graphs.connected(n)][::5]
    padded = np.asarray(graphs.stacked(tuple(table), SIZE))
    keys = jax.random.split(jax.random.key(0), count)
    make = jax.jit(jax.vmap(lambda k, g: q.problem(k, g, MOST)))
    return jax.device_get(make(keys, padded[np.arange(count) % len(padded)]))


@pytest.mark.slow
def test_sequences():
    many = problems(60)
    assert many.tokens.shape == (60, q.length(SIZE, MOST))
    for i in range(60):
        p = jax.tree.map(lambda x, i=i: np.asarray(x[i]), many)
        tokens, m = p.tokens.tolist(), int(p.graph.sum()) // 2
        assert tokens[0] == SIZE + q.BOS
        body = np.reshape(tokens[1 : 1 + 3 * m], (m, 3))
        g = nx.Graph(body[:, :2].tolist())
        assert np.all(body[:, 2] == SIZE + q.EDGE) and g.number_of_edges() == m
        assert all(p.graph[u, v] for u, v in g.edges)
        start = 1 + 3 * m
        assert tokens[start] == SIZE + q.QUERY and tokens[start + 3] == SIZE + q.PATH
        source, target = tokens[start + 1 : start + 3]
        assert (source, target) == tuple(p.ends) and tokens[start + 4] == source and int(p.start) == start + 4
        path = tokens[start + 4 : tokens.index(SIZE + q.END)]
        assert path[-1] == target and nx.is_path(g, path) and len(path) == nx.shortest_path_length(g, source, target) + 1
        assert np.flatnonzero(p.learned).tolist() == list(range(start + 5, start + 5 + len(path)))


@pytest.mark.slow
def test_valid_answers():
    many = problems(60)  # as many as above: one program
    padded = np.pad(many.tokens, ((0, 0), (0, SIZE)), constant_values=SIZE + q.END)
    answer = np.stack([row[s + 1 : s + 1 + SIZE] for row, s in zip(padded, many.start, strict=True)])
    check = jax.jit(jax.vmap(q.valid))
    assert np.all(check(many, answer))
    assert not np.any(check(many, np.where(np.arange(SIZE) == 0, many.ends[:, :1], answer)))  # stays at the source
    assert not np.any(check(many, np.where(answer == SIZE + q.END, 0, answer)))  # never ends
    other = (many.ends[:, 1:] + 1) % SIZE
    assert not np.any(check(many, np.where(answer == many.ends[:, 1:], other, answer)))  # ends elsewhere


def test_split():
    inside, outside = q.split((3,) * 2 + (4,) * 6 + (5,) * 21)
    assert sorted(inside + outside) == list(range(29)) and len(outside) == 5
    assert len({i for i in outside if i >= 8}) == 4
