"""Thoughts of the construction on a few graphs, in float32 and against a queue; settings that do not fit."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.data import digraphs
from jaxdyn.theories.sup.graph_search import Search, instance, think, trial

SMALL = {"names": 14, "edges": 18, "thoughts": 4, "width": 8, "graphs": 6, "rows": 19.0}


@pytest.mark.slow
def test_thoughts_in_float32():
    kinds = ["random", "tree", "cycle", "dense"]
    ds = jd.sweep(trial, jd.grid(Search, kind=kinds, nodes=[7.0, 14.0], dtype="float32", **SMALL), 2)
    assert float(abs(ds.measured_thought - ds.predicted_thought).max()) < 1e-6
    assert float(abs(ds.measured_margin - ds.predicted_margin).max()) < 1e-6
    assert bool((ds.measured_steps == ds.predicted_steps).all())


@pytest.mark.slow
def test_predicted_sets_by_a_queue(x64):
    s = Search(kind="tree", nodes=14.0, **SMALL)
    one = instance(s, jax.random.key(5))
    thoughts, logits = jax.jit(think)(s, one, jax.random.key(6))
    assert thoughts.shape == (2, 5, 6, 19) and logits.shape == (2, 5, 6, 19)
    edges, root = np.asarray(one.graphs.edges), np.asarray(one.graphs.root)
    for g in range(6):
        away = digraphs.distances(edges[g], int(root[g]))
        for c in range(4):
            assert set(np.flatnonzero(thoughts[0, c, g] > 0.1).tolist()) == {v for v, d in away.items() if d <= c + 1}


@pytest.mark.parametrize(("fields", "reason"), [({"nodes": 60.0}, "nodes is at most names"), ({"width": 5}, "width is even")])
def test_refused_settings(fields, reason):
    with pytest.raises(jd.UsageError, match=reason):
        Search(**fields)
