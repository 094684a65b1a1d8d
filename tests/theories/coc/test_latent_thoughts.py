"""Judges of thoughts on made-up runs."""

import numpy as np
import xarray as xr

from jaxdyn.engine.judge import all_passed
from jaxdyn.theories.coc import latent_thoughts
from jaxdyn.theories.coc.training import AMONG, EDITS, WAYS

WAVE = np.array([0.01, -0.01, 0.005, -0.005])[:, None]


def made(
    ablated=(0.95, 0.1, 0.1, 0.1, 0.02, 0.3), answered=(0.02, 0.1, 0.95), edited=(0.9, 0.8), fall=(0.3, 0.2), error=0.02, t=(9, 7)
):
    rows = {
        "ablated": (ablated, "way"),
        "answered": (answered, "inputs"),
        "edited": (edited, "edit"),
        "fall": (fall, "among"),
        "fall_t": (t, "among"),
    }
    data = {f"measured_{name}": (("seed", dim), np.array(values) + WAVE) for name, (values, dim) in rows.items()}
    data["measured_lost_error"] = (("seed", "way"), np.full((4, len(WAYS)), error))
    coords = {"seed": range(4), "way": list(WAYS), "edit": list(EDITS), "inputs": range(3), "among": list(AMONG)}
    return xr.Dataset(data, coords)


JUDGES = (
    latent_thoughts.judge_ablation,
    latent_thoughts.judge_order,
    latent_thoughts.judge_count,
    latent_thoughts.judge_edit,
    latent_thoughts.judge_entropy,
)


def test_all_hold_where_thoughts_carry_the_answer():
    ds = made()
    for judge in JUDGES:
        assert all_passed(judge(ds)) is True


def test_each_rival_fails_its_claim():
    ds = made()
    assert all_passed(latent_thoughts.judge_ablation(latent_thoughts.USELESS(ds))) is False
    assert all_passed(latent_thoughts.judge_ablation(latent_thoughts.TIME_ALONE(ds))) is False
    assert all_passed(latent_thoughts.judge_count(latent_thoughts.USELESS(ds))) is False
    assert all_passed(latent_thoughts.judge_edit(latent_thoughts.UNEDITED(ds))) is False
    assert all_passed(latent_thoughts.judge_entropy(latent_thoughts.FLAT(ds))) is False
    for rival in (latent_thoughts.USELESS, latent_thoughts.TIME_ALONE):
        assert all_passed(latent_thoughts.judge_order(rival(ds))) is False


def test_one_network_without_a_fall_of_entropy_leaves_the_mean_open():
    ds = made()
    check = latent_thoughts.judge_entropy(ds.assign(measured_fall_t=ds.measured_fall_t.where(ds.seed > 0, -2.0)))[2]
    assert check.name.endswith("mean over networks") and check.passed is None and check.interval[0] < 0 < check.value


def test_pauses_fed_for_thoughts_lose_nothing_when_thoughts_are_changed():
    ds = made()
    assert all_passed(latent_thoughts.judge_ablation(latent_thoughts.PAUSED(ds))) is False
    np.testing.assert_array_equal(latent_thoughts.PAUSED(ds).measured_ablated.sel(way="kept"), ds.measured_ablated.sel(way="pause"))


def test_one_way_that_costs_nothing_is_enough():
    assert all_passed(latent_thoughts.judge_ablation(made(ablated=(0.95, 0.9, 0.1, 0.1, 0.1, 0.1)))) is False
    assert all_passed(latent_thoughts.judge_order(made(ablated=(0.95, 0.1, 0.1, 0.1, 0.1, 0.9)))) is False
    assert all_passed(latent_thoughts.judge_count(made(answered=(0.02, 0.9, 0.95)))) is False
    assert all_passed(latent_thoughts.judge_edit(made(edited=(0.9, 0.1)))) is False


def test_what_few_graphs_leave_open_is_undecided():
    ds = made(ablated=(0.95, 0.65, 0.1, 0.1, 0.1, 0.1))
    assert all_passed(latent_thoughts.judge_ablation(ds)) is True
    assert all_passed(latent_thoughts.judge_ablation(ds.assign(measured_lost_error=ds.measured_lost_error * 3))) is None


def test_a_fall_of_entropy_that_chains_of_text_have_as_well_is_not_the_work_of_thoughts():
    ds = made()
    flat = ds.assign(measured_fall=ds.measured_fall * 0 + np.array([0.01, -0.01, 0.005, -0.005])[:, None])
    both = xr.concat([ds, flat], xr.IndexVariable("recipe", ["coconut", "cot"]))
    assert all_passed(latent_thoughts.judge_forced(both)) is True
    assert all_passed(latent_thoughts.judge_forced(xr.concat([ds, ds], both.recipe))) is False
    assert all_passed(latent_thoughts.judge_forced(latent_thoughts.FLAT(both))) is False


def test_the_gate_asks_for_a_network_that_answers():
    assert latent_thoughts.judge_count(made(answered=(0.0, 0.1, 0.5)))[0].passed is False
