"""Judges of trained networks on made-up runs."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.engine.judging.check import all_passed, holds
from jaxdyn.theories.coc.training import KINDS, ORDERS
from jaxdyn.theories.sup import trained

WAVE = np.array([0.01, -0.01, 0.005, -0.005])


def thoughts(gaps, looks=None, answered=0.95):
    """Runs with these differences, of nodes and of edges, by thought and order."""
    value = np.asarray(gaps, float) + WAVE[:, None, None]
    edges = value if looks is None else np.asarray(looks, float) + WAVE[:, None, None]
    data = {
        "measured_gaps": (("seed", "thought", "order"), value),
        "measured_looks": (("seed", "thought", "order"), edges),
        "measured_answered": (("seed", "inputs"), np.full((4, 3), answered)),
    }
    return xr.Dataset(data, {"seed": range(4), "thought": [1, 2], "order": list(ORDERS), "inputs": range(3)})


def methods(wave=WAVE, **means):
    data = np.array([m + wave * (1 + k) for k, m in enumerate(means.values())])
    return xr.Dataset({"measured_accuracy": (("recipe", "seed"), data)}, {"recipe": list(means), "seed": range(4)})


def read(answers):
    return {r.name: r for r in answers[1:]}


CLEAR = [[0.9, 0.8, 0.7], [0.6, 0.5, 0.4]]


def test_differences_are_means_over_networks():
    seen = read(trained.judge_frontier(thoughts(CLEAR)))
    for i in (1, 2):
        for o, gap in zip(ORDERS, CLEAR[i - 1], strict=True):
            assert seen[f"{o}, thought {i}"].value == pytest.approx(gap)
    low, high = seen[f"{ORDERS[0]}, thought 1"].interval
    assert 0.87 < low < 0.9 < high < 0.93


def test_frontier_and_reachable_edges_are_the_same_at_step_1_and_not_compared():
    seen = read(trained.judge_frontier(thoughts(CLEAR, [[9, 0, 7], [9, 8, 7]])))
    assert sum("attention" in name for name in seen) == 5


def test_rivals_speak_of_what_is_read():
    names = set(read(trained.judge_frontier(thoughts(CLEAR))))
    assert set(trained.NOTHING) == names and set(trained.ONE_NODE) < names
    assert not any(ORDERS[0] in name for name in trained.ONE_NODE)


def test_networks_that_did_not_learn_do_not_count():
    ds = thoughts(CLEAR)
    ds.measured_answered[0] = 0.5
    ds.measured_gaps[0] = -5.0
    gate, *_ = answers = trained.judge_frontier(ds)
    assert gate.passed and read(answers)[f"{ORDERS[0]}, thought 1"].value > 0.8
    ds.measured_answered[1:3] = 0.5
    assert not trained.judge_frontier(ds)[0].passed


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
    seen = {name: r.value for name, r in read(trained.judge_walks(ds)).items()}
    assert seen == {trained.HELD: pytest.approx(3), trained.ABOVE: 1, trained.LOWER: pytest.approx(0.5)}
    assert trained.UNREAD[trained.HELD](ds) == pytest.approx(-0.3)
    assert read(trained.judge_walks(walks([[0, 0], [0, 0]], [[0, 0], [0, 2]])))[trained.ABOVE].value == 0


def test_accuracies_are_read_with_their_interval():
    seen = read(trained.judge_accuracy(methods(coconut=0.95, cot=0.6, no_cot=0.5)))
    assert seen["accuracy of Coconut minus that of cot"].value == pytest.approx(0.35)
    assert seen["accuracy of no_cot"].value == pytest.approx(0.5)
    wide = read(trained.judge_accuracy(methods(WAVE * 10, coconut=0.95, cot=0.8)))["accuracy of Coconut minus that of cot"]
    assert wide.interval[0] < 0.1 < wide.interval[1]
    assert not trained.judge_accuracy(methods(coconut=0.5, cot=0.6))[0].passed


def test_passed_nodes():
    low = np.array([[1.5, 4.5, -2.4], [4.9, 0.5, -0.6]]) + WAVE[:, None, None]
    ds = thoughts(CLEAR).assign(measured_apart=(("seed", "thought", "order"), low))
    checks = trained.judge_apart(ds)
    assert all_passed(checks) is True
    alike = {name: says(ds) for name, says in trained.CONSTRUCTION.items()}
    np.testing.assert_allclose(list(alike.values()), (2.1, -0.1), atol=1e-12)
    assert holds(checks[1].bound, alike[checks[1].name]) is False
