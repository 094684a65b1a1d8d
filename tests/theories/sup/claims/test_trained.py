"""Judges of trained networks on made-up runs."""

import numpy as np
import xarray as xr

from jaxdyn.engine.judge import all_passed
from jaxdyn.theories.coc.trials.training import ORDERS
from jaxdyn.theories.sup.claims import trained

WAVE = np.array([0.01, -0.01, 0.005, -0.005])


def thoughts(t):
    """Runs whose differences have this t, by thought and order."""
    value = np.asarray(t, float) + WAVE[:, None, None]
    data = {
        "measured_gaps_t": (("seed", "thought", "order"), value),
        "measured_answered": (("seed", "inputs"), np.full((4, 3), 0.95)),
    }
    return xr.Dataset(data, {"seed": range(4), "thought": [1, 2], "order": list(ORDERS), "inputs": range(3)})


def methods(**means):
    data = np.array([m + WAVE * (1 + k) for k, m in enumerate(means.values())])
    return xr.Dataset({"measured_accuracy": (("recipe", "seed"), data)}, {"recipe": list(means), "seed": range(4)})


def test_an_order_holds_only_if_all_differences_are_certain():
    clear = thoughts([[9, 8, 7], [9, 8, 7]])
    assert all_passed(trained.judge_frontier(clear)) is True
    assert all_passed(trained.judge_frontier(thoughts([[9, 8, 7], [9, 2, 7]]))) is False
    for rival in (trained.nothing, trained.one_node):
        assert all_passed(trained.judge_frontier(rival(clear))) is False


def test_accuracies():
    ahead = methods(coconut=0.95, cot=0.6, no_cot=0.5)
    assert all_passed(trained.judge_accuracy(ahead)) is True
    assert all_passed(trained.judge_accuracy(methods(coconut=0.95, cot=0.94, no_cot=0.5))) is False
    assert all_passed(trained.judge_accuracy(trained.alike(ahead))) is False


def test_passed_nodes():
    ds = thoughts([[9, 8, 7], [9, 8, 7]])
    low = np.array([[1.5, 4.5, -2.4], [4.9, 0.5, -0.6]]) + WAVE[:, None, None]
    ds = ds.assign(measured_apart=(("seed", "thought", "order"), low))
    assert all_passed(trained.judge_apart(ds)) is True
    for rival in (trained.flat, trained.construction):
        assert all_passed(trained.judge_apart(rival(ds))) is False


def test_networks_that_did_not_learn_are_passed_over():
    ds = thoughts([[9, 8, 7], [9, 8, 7]])
    ds.measured_answered[0] = 0.5
    ds.measured_gaps_t[0] = -5.0
    checks = trained.judge_frontier(ds)
    assert checks[0].passed and all_passed(checks) is True
    ds.measured_answered[1:3] = 0.5
    assert not trained.judge_frontier(ds)[0].passed
