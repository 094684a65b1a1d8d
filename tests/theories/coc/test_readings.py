"""Groups of nodes and edges, walks and shortcuts against plain Python; attention and hidden states against the cached pass."""

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from jaxdyn.data import reachability
from jaxdyn.nn import Transformer, thoughts
from jaxdyn.nn.transformer import init
from jaxdyn.theories.coc import readings

SIZES = [reachability.Sizes(2, 2), reachability.Sizes(3, 2), reachability.Sizes(3, 3)]
COUNT = 12


def sampled(sizes, seed=0):
    keys = jax.random.split(jax.random.key(seed), COUNT)
    return jax.device_get(jax.jit(lambda k: readings.pose(jax.vmap(lambda one: reachability.draw(one, sizes))(k), sizes))(keys))


def one(problem, g):
    return jax.tree.map(lambda x: x[g], problem)


def graph(edges):
    return nx.DiGraph(np.asarray(edges).tolist())


def ends(edges, root, steps):
    """Ends of walks of 0 to ``steps`` edges, from all walks written out."""
    out = [[root]]
    for _ in range(steps):
        out.append([b for at in out[-1] for a, b in edges.tolist() if a == at])
    return [set(at) for at in out]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [*SIZES[:1], *(pytest.param(s, marks=pytest.mark.slow) for s in SIZES[1:])])
def test_walks_of_trees_end_at_their_length_and_shortcuts_part_the_two(sizes):
    of = sampled(sizes)
    cut, nodes = jax.device_get(readings.shortcut(of))
    for g in range(COUNT):
        for problem, parted in ((one(of.problem, g), False), (one(cut, g), True)):
            root, node = int(problem.roots[0]), int(nodes[g])
            found = np.asarray(readings.walks(problem, sizes, sizes.hops))
            away = np.asarray(reachability.levels(problem, sizes))
            assert [set(np.flatnonzero(at)) for at in found] == ends(problem.edges, root, sizes.hops)
            by_distance = [set(np.flatnonzero(away == i)) for i in range(sizes.hops + 1)]
            same = [set(np.flatnonzero(at)) == level for at, level in zip(found, by_distance, strict=True)]
            assert all(same) is not parted
            if parted:
                assert away[node] == 1 and found[2, node] and node not in by_distance[2]


@pytest.mark.thinned
@pytest.mark.parametrize("sizes", SIZES)
def test_a_shortcut_replaces_one_idle_edge_of_the_other_family(sizes):
    of = sampled(sizes, 1)
    cut, nodes = jax.device_get(readings.shortcut(of))
    for g in range(COUNT):
        old, new = (set(map(tuple, p.edges[g].tolist())) for p in (of.problem, cut))
        (gone,), (added,) = old - new, new - old
        root, other = of.problem.roots[g].tolist()
        assert added == (root, nodes[g]) and nodes[g] not in of.problem.path[g] and of.away[g, nodes[g]] == 2
        assert of.away[g, gone[0]] == of.away[g, gone[1]] == sizes.hops + 1
        negative = int(of.problem.candidates[g, 1])
        assert negative in nx.descendants(graph(cut.edges[g]), other)


def test_groups_of_edges_by_hand():
    sizes = reachability.Sizes(3, 2)
    of = sampled(sizes)
    groups = np.asarray(jnp.stack(readings.edge_groups(of, 3)))
    values = np.random.default_rng(0).normal(size=(3, COUNT, sizes.edges))
    differences = np.asarray(readings.between(jnp.asarray(values, jnp.float32), tuple(jnp.asarray(x) for x in groups)))
    for i in (1, 2, 3):
        for g in range(COUNT):
            edges, path = of.problem.edges[g].tolist(), of.problem.path[g].tolist()
            lengths = nx.single_source_shortest_path_length(graph(edges), path[0])
            away = [lengths.get(a, 9) for a, _ in edges]
            expected = [
                [e == path[i - 1 : i + 1] for e in edges],
                [a == i - 1 for a in away],
                [a <= i - 1 for a in away],
                [a > i - 1 for a in away],
            ]
            np.testing.assert_array_equal(groups[:, i - 1, g], expected)
            means = [values[i - 1, g][np.array(group)].mean() for group in expected]
            np.testing.assert_allclose(differences[i - 1, :, g], -np.diff(means), atol=1e-5)


@pytest.mark.slow
def test_one_pass_gives_the_hidden_states_of_the_cached_one_and_attention_by_edge():
    sizes = reachability.Sizes(2, 2)
    shape = Transformer(
        vocabulary=sizes.vocabulary, width=8, layers=2, heads=2, hidden=8, tied=True, scan=False, base=64.0, std=0.5
    )
    params, of = init(shape, jax.random.key(3)), sampled(sizes)
    hidden = thoughts.think(shape, params, of.tokens, 2)
    x = jnp.concatenate([params["embed"][of.tokens], jnp.moveaxis(hidden[:2], 0, 1)], 1)
    out, maps = readings.passed(shape, params, x)
    np.testing.assert_allclose(out[:, -3:], jnp.moveaxis(hidden, 0, 1), atol=1e-5)
    seen = readings.edges_seen(maps[-1], sizes.edges, 2)
    last = sizes.prompt - 1
    assert int(of.tokens[0, last]) == int(of.problem.roots[0, 0])
    for i in (0, 1):
        for e in range(sizes.edges):
            np.testing.assert_array_equal(of.tokens[:, 1 + 3 * e : 3 + 3 * e], of.problem.edges[:, e])
            by_hand = np.asarray(maps[-1])[:, :, last + i, 1 + 3 * e : 4 + 3 * e].sum(-1).mean(1)
            np.testing.assert_allclose(seen[i, :, e], by_hand, rtol=1e-5)


def test_open_children_is_the_entropy_among_the_nodes_at_a_distance():
    of = sampled(reachability.Sizes(2, 2))
    products = np.random.default_rng(1).normal(size=(2, COUNT, 10)).astype(np.float32)
    found = np.asarray(readings.open_children(products, of))
    for i in (1, 2):
        for g in range(COUNT):
            p = np.exp(products[i - 1, g][of.away[g] == i])
            p /= p.sum()
            np.testing.assert_allclose(found[i - 1, g], -(p * np.log(p)).sum(), rtol=1e-4)
