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
