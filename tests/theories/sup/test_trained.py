"""Judges of trained networks on made-up runs."""

import numpy as np
import xarray as xr

from jaxdyn.engine.judge import all_passed
from jaxdyn.theories.coc.training import KINDS, ORDERS
from jaxdyn.theories.sup import trained

WAVE = np.array([0.01, -0.01, 0.005, -0.005])


def thoughts(t, looks=None, answered=0.95):
    """Runs whose differences have this t, of nodes and of edges, by thought and order."""
    value = np.asarray(t, float) + WAVE[:, None, None]
    edges = value if looks is None else np.asarray(looks, float) + WAVE[:, None, None]
    data = {
        "measured_gaps_t": (("seed", "thought", "order"), value),
        "measured_looks_t": (("seed", "thought", "order"), edges),
        "measured_answered": (("seed", "inputs"), np.full((4, 3), answered)),
    }
    return xr.Dataset(data, {"seed": range(4), "thought": [1, 2], "order": list(ORDERS), "inputs": range(3)})


def methods(wave=WAVE, **means):
    data = np.array([m + wave * (1 + k) for k, m in enumerate(means.values())])
    return xr.Dataset({"measured_accuracy": (("recipe", "seed"), data)}, {"recipe": list(means), "seed": range(4)})


CLEAR = [[9, 8, 7], [9, 8, 7]]


def test_an_order_holds_only_if_all_differences_are_certain():
    assert all_passed(trained.judge_frontier(thoughts(CLEAR))) is True
    assert all_passed(trained.judge_frontier(thoughts([[9, 8, 7], [9, 2, 7]], CLEAR))) is False
    assert all_passed(trained.judge_frontier(thoughts(CLEAR, [[9, 8, 7], [9, 2, 7]]))) is False
    for rival in (trained.NOTHING, trained.ONE_NODE):
        checks = trained.judge_frontier(rival(thoughts(CLEAR)))
        assert {c.passed for c in checks if "attention" in c.name} >= {False} and all_passed(checks) is False


def test_frontier_and_reachable_edges_are_the_same_at_step_1_and_not_compared():
    checks = trained.judge_frontier(thoughts(CLEAR, [[9, 0, 7], [9, 8, 7]]))
    assert all_passed(checks) is True
    assert sum("attention" in c.name for c in checks) == 5


def test_networks_that_did_not_learn_are_judged_by_what_they_hold_where_none_did():
    checks = trained.judge_frontier(thoughts(CLEAR, answered=0.1))
    assert not checks[0].passed and all_passed(checks) is True
    assert all_passed(trained.judge_frontier(thoughts([[-2, 1, 0], [0, 1, 1]], answered=0.1))) is False


def walks(products, t):
    wave = WAVE[:, None, None] * np.array([1, 2])[:, None]
    data = {
        "measured_walk": (("seed", "kind", "early"), np.asarray(products, float) + wave),
        "measured_walk_t": (("seed", "kind", "early"), np.asarray(t, float) + WAVE[:, None, None]),
        "measured_answered": (("seed", "inputs"), np.full((4, 3), 0.95)),
    }
    return xr.Dataset(data, {"seed": range(4), "kind": list(KINDS), "early": [1, 2], "inputs": range(3)})


def test_walks_and_distances_are_distinguished():
    ds = walks([[-0.3, 2.0], [3.0, 1.5]], [[-40, 20], [0, 15]])
    assert all_passed(trained.judge_walks(ds)) is True
    for rival in (trained.UNREAD, trained.BY_DISTANCE):
        assert all_passed(trained.judge_walks(rival(ds))) is False


def test_accuracies_are_judged_with_their_interval():
    ahead = methods(coconut=0.95, cot=0.6, no_cot=0.5)
    assert all_passed(trained.judge_accuracy(ahead)) is True
    assert all_passed(trained.judge_accuracy(methods(coconut=0.95, cot=0.94, no_cot=0.5))) is False
    assert all_passed(trained.judge_accuracy(trained.ALIKE(ahead))) is False
    assert all_passed(trained.judge_accuracy(methods(WAVE * 10, coconut=0.95, cot=0.8))) is None
    assert not trained.judge_accuracy(methods(coconut=0.5, cot=0.6))[0].passed


def test_passed_nodes():
    ds = thoughts(CLEAR)
    low = np.array([[1.5, 4.5, -2.4], [4.9, 0.5, -0.6]]) + WAVE[:, None, None]
    ds = ds.assign(measured_apart=(("seed", "thought", "order"), low))
    assert all_passed(trained.judge_apart(ds)) is True
    for rival in (trained.FLAT, trained.CONSTRUCTION):
        assert all_passed(trained.judge_apart(rival(ds))) is False


def test_networks_that_did_not_learn_do_not_count():
    ds = thoughts(CLEAR)
    ds.measured_answered[0] = 0.5
    ds.measured_gaps_t[0] = -5.0
    checks = trained.judge_frontier(ds)
    assert checks[0].passed and all_passed(checks) is True
    ds.measured_answered[1:3] = 0.5
    assert not trained.judge_frontier(ds)[0].passed
