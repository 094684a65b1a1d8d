"""Judges of thoughts on made-up runs."""

import numpy as np
import xarray as xr

from jaxdyn.engine.judge import all_passed
from jaxdyn.theories.coc.claims import thoughts
from jaxdyn.theories.coc.trials.training import EDITS, WAYS

WAVE = np.array([0.01, -0.01, 0.005, -0.005])[:, None]


def made(ablated=(0.95, 0.1, 0.1, 0.1, 0.02), answered=(0.02, 0.1, 0.95), edited=(0.9, 0.8), entropy=(0.6, 0.2, 1.0)):
    rows = {
        "ablated": (ablated, "way"),
        "answered": (answered, "inputs"),
        "edited": (edited, "edit"),
        "entropy": (entropy, "inputs"),
    }
    data = {f"measured_{name}": (("seed", dim), np.array(values) + WAVE) for name, (values, dim) in rows.items()}
    return xr.Dataset(data, {"seed": range(4), "way": list(WAYS), "edit": list(EDITS), "inputs": range(3)})


def test_all_hold_where_thoughts_carry_the_answer():
    ds = made()
    for judge in (thoughts.judge_ablation, thoughts.judge_count, thoughts.judge_edit, thoughts.judge_entropy):
        assert all_passed(judge(ds)) is True


def test_each_rival_fails_its_claim():
    ds = made()
    assert all_passed(thoughts.judge_ablation(thoughts.useless(ds))) is False
    assert all_passed(thoughts.judge_ablation(thoughts.time_alone(ds))) is False
    assert all_passed(thoughts.judge_count(thoughts.useless(ds))) is False
    assert all_passed(thoughts.judge_edit(thoughts.unmoved(ds))) is False
    assert all_passed(thoughts.judge_entropy(thoughts.level(ds))) is not True


def test_pauses_fed_for_thoughts_lose_nothing_when_thoughts_are_changed():
    ds = made()
    assert all_passed(thoughts.judge_ablation(thoughts.paused(ds))) is False
    np.testing.assert_array_equal(thoughts.paused(ds).measured_ablated.sel(way="kept"), ds.measured_ablated.sel(way="pause"))


def test_one_way_that_costs_nothing_is_enough():
    assert all_passed(thoughts.judge_ablation(made(ablated=(0.95, 0.9, 0.1, 0.1, 0.1)))) is False
    assert all_passed(thoughts.judge_count(made(answered=(0.02, 0.9, 0.95)))) is False
    assert all_passed(thoughts.judge_edit(made(edited=(0.9, 0.1)))) is False


def test_the_gate_asks_for_a_network_that_answers():
    assert thoughts.judge_count(made(answered=(0.0, 0.1, 0.5)))[0].passed is False
