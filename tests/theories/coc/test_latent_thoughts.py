"""Judges of thoughts on made-up runs."""

import numpy as np
import xarray as xr

from jaxdyn.engine.claims.edits import Off
from jaxdyn.engine.judging.check import all_passed, holds
from jaxdyn.theories.coc import latent_thoughts
from jaxdyn.theories.coc.training import AMONG, EDITS, WAYS

WAVE = np.array([0.01, -0.01, 0.005, -0.005])[:, None]


def made(ablated=(0.95, 0.1, 0.1, 0.1, 0.02, 0.3), answered=(0.02, 0.1, 0.95), edited=(0.9, 0.8), fall=(0.3, 0.2), error=0.02):
    rows = {
        "ablated": (ablated, "way"),
        "answered": (answered, "inputs"),
        "edited": (edited, "edit"),
        "fall": (fall, "among"),
    }
    data = {f"measured_{name}": (("seed", dim), np.array(values) + WAVE) for name, (values, dim) in rows.items()}
    data["measured_lost_error"] = (("seed", "way"), np.full((4, len(WAYS)), error))
    coords = {"seed": range(4), "way": list(WAYS), "edit": list(EDITS), "inputs": range(3), "among": list(AMONG)}
    return xr.Dataset(data, coords)


CHECKED = (latent_thoughts.judge_ablation, latent_thoughts.judge_count, latent_thoughts.judge_edit)
READ = (latent_thoughts.judge_order, latent_thoughts.judge_entropy)


def readings(judge, ds):
    return {r.name: r for r in judge(ds)[1:]}


def test_all_hold_where_thoughts_carry_the_answer():
    ds = made()
    assert all(all_passed(judge(ds)) is True for judge in CHECKED)
    lost = readings(latent_thoughts.judge_order, ds)[latent_thoughts.EXCHANGED]
    np.testing.assert_allclose(lost.value, 0.65)
    fall = readings(latent_thoughts.judge_entropy, ds)
    np.testing.assert_allclose([reading.value for reading in fall.values()], 0.3)


def test_rivals_speak_of_checks_and_readings_and_differ_from_them():
    ds = made()
    for claim in latent_thoughts.CLAIMS[:5]:
        seen = {c.name: c for c in claim.judge(ds)}
        for rival in claim.rivals.values():
            says = rival.rival if isinstance(rival, Off) else rival
            numbers = {name: value(ds) if callable(value) else value for name, value in says.items()}
            assert set(numbers) <= set(seen)
            if claim.expected == "upheld":
                assert any(holds(seen[name].bound, value) is False for name, value in numbers.items())


def test_what_is_left_of_the_answer_without_the_edit():
    np.testing.assert_allclose([says(made()) for says in latent_thoughts.UNEDITED.values()], 0.06)


def test_pauses_fed_for_thoughts_lose_nothing_when_thoughts_are_changed():
    ds = made()
    assert all_passed(latent_thoughts.judge_ablation(latent_thoughts.PAUSED(ds))) is False
    np.testing.assert_array_equal(latent_thoughts.PAUSED(ds).measured_ablated.sel(way="kept"), ds.measured_ablated.sel(way="pause"))


def test_one_way_that_costs_nothing_is_enough():
    assert all_passed(latent_thoughts.judge_ablation(made(ablated=(0.95, 0.9, 0.1, 0.1, 0.1, 0.1)))) is False
    assert all_passed(latent_thoughts.judge_count(made(answered=(0.02, 0.9, 0.95)))) is False
    assert all_passed(latent_thoughts.judge_edit(made(edited=(0.9, 0.1)))) is False


def test_what_few_graphs_leave_open_is_undecided():
    ds = made(ablated=(0.95, 0.65, 0.1, 0.1, 0.1, 0.1))
    assert all_passed(latent_thoughts.judge_ablation(ds)) is True
    assert all_passed(latent_thoughts.judge_ablation(ds.assign(measured_lost_error=ds.measured_lost_error * 3))) is None


def test_the_gate_asks_for_a_network_that_answers():
    assert latent_thoughts.judge_count(made(answered=(0.0, 0.1, 0.5)))[0].passed is False
