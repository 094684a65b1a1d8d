"""Instances have the degrees that their regimes need, and reach what one step reaches."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.emer import instances, model


@pytest.mark.parametrize(("target", "place", "degree"), [("top", 5, 3), ("middle", 4, 2), ("low", 3, 1)])
def test_degrees_and_targets(target, place, degree, x64):
    for seed in range(5):
        case = instances.sample(jax.random.key(seed), 7, 3.0, 1.0, 0.4, jd.Code.of(target, instances.TARGETS))
        thought, edges = np.asarray(case.thought), np.asarray(case.edges)
        np.testing.assert_allclose(thought, [3**-0.5] * 3 + [0] * 4)
        assert set(np.unique(edges)) <= {0, 1} and not edges.diagonal().any()
        assert edges[:3, 3:].sum(0).tolist() == [1, 2, 3, 0]
        assert np.argmax(case.target) == place and edges[:3, place].sum() == degree
        assert np.asarray(case.reached).tolist() == [v < 3 or bool(edges[:3, v].any()) for v in range(7)]


def test_renamed_instances_are_the_same_graph(x64):
    case = instances.sample(jax.random.key(1), 7, 3.0, 2.0, 0.4, jd.Code.of("top", instances.TARGETS))
    order = np.asarray(model.relabellings(7))[10]
    other = instances.renamed(case, order)
    for v in range(7):
        assert other.thought[v] == case.thought[order[v]] and bool(other.reached[v]) == bool(case.reached[order[v]])
        for u in range(7):
            assert other.edges[u, v] == case.edges[order[u], order[v]]


def test_random_digraphs(x64):
    key = jax.random.key(0)
    assert float(instances.random_digraph(key, 6, 0.0).sum()) == 0
    assert float(instances.random_digraph(key, 6, 1.0).sum()) == 30
