"""Every script on Li2's trained networks, run at a tiny size; its numbers on curves that are known."""

import csv

import numpy as np
import pytest
import xarray as xr

from jaxdyn import experiment
from jaxdyn.theories.li2.published import CRITICAL

TINY = {"seeds": 2, "hidden": 8, "epochs": 4, "every": 2}
SIZES = {
    "li2_fig3": {"CASES": {"quick": TINY | {"group": "5", "share": 0.5}}, "RATES": [0.0005, 0.002]},
    "li2_fig5": {
        "NAMES": ("prime", "non-Abelian"),
        "GROUPS": {"quick": ("5", "D3")},
        "CASES": {"quick": TINY | {"share": [0.6, 0.8, 1.0]}},
    },
    "li2_fig7": {"CASES": {"quick": TINY | {"groups": {"5": [0.9, 1.1]}, "lr": [0.001, 0.01, 0.1]}}},
    "li2_fig8": {"CASES": {"quick": TINY | {"group": "5", "hidden": [4]}}},
    "li2_nodes": {"CASES": {"quick": TINY | {"group": "5"}}},
    "li2_zero_init": {"CASES": {"quick": {"5": TINY | {"share": [0.5, 0.8]}}}},
}
TABLES = {
    "li2_fig3": {"levels": 4, "stages": 4},
    "li2_fig5": {"halves": 2, "powers": 3},
    "li2_fig7": {"rates": 6},
    "li2_fig8": {"nodes": 1},
    "li2_nodes": {"shares": 4},
    "li2_zero_init": {"times": 2},
}


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "li2_zero_init" else pytest.mark.slow) for n in SIZES])
def test_a_script_trains_tabulates_and_draws(name, script, monkeypatch, tmp_path, capsys):
    module = script(name)
    for field, value in SIZES[name].items():
        monkeypatch.setattr(module, field, value)
    assert experiment.main(module.run, module.__doc__, ["--out", str(tmp_path)]) == 0
    for table, count in TABLES[name].items():
        assert len(read(tmp_path / f"{table}.csv")) == count
    assert (tmp_path / f"{name}.svg").stat().st_size > 10_000 and list(tmp_path.glob(f"{name}*.nc"))
    shards = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("shards/**/*.nc")}
    monkeypatch.setattr(experiment, "figure", lambda *_: None)
    assert shards and experiment.main(module.run, module.__doc__, ["--out", str(tmp_path)]) == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("shards/**/*.nc")} == shards, "no run was trained again"
    capsys.readouterr()


@pytest.mark.parametrize("name", list(SIZES))
def test_wrong_words_exit_with_2(name, script, capsys):
    module = script(name)
    with pytest.raises(SystemExit) as stop:
        experiment.main(module.run, module.__doc__, ["--scale", "huge"])
    assert stop.value.code == 2
    capsys.readouterr()


def test_wrong_fields_exit_with_2(script, monkeypatch, tmp_path, capsys):
    module = script("li2_zero_init")
    monkeypatch.setattr(module, "CASES", {"quick": {"5": TINY | {"share": [1.0]}}})
    assert experiment.main(module.run, module.__doc__, ["--out", str(tmp_path)]) == 2
    assert "share=1.0 is not allowed: share leaves a pair" in capsys.readouterr().err


def test_figure_5_finds_the_share_and_power_of_known_curves(script):
    module, ratios, groups = script("li2_fig5"), np.array([0.6, 0.8, 0.9, 1.0, 1.1, 1.3]), ["11", "23", "47", "101"]
    critical = CRITICAL * np.log([int(g) for g in groups]) / [int(g) for g in groups]
    share = np.broadcast_to(ratios * critical[:, None], (2, 4, 6))  # seed, group, share
    factor = np.array([0.9, 0.92])[:, None, None]
    accuracy = 1 / (1 + np.exp(-40 * np.log(share / (factor * critical[:, None]))))
    dims = ("seed", "group", "share")
    ds = xr.Dataset(
        {
            "test_accuracy": ((*dims, "epoch"), np.stack([0 * accuracy, accuracy, accuracy], -1)),
            "measured_critical": (dims, share),
            "predicted_critical": (dims, np.broadcast_to(critical[:, None], share.shape)),
        },
        coords={"group": groups, "share": ratios, "epoch": [0, 1, 2]},
    )
    lines = [module.row(ds.sel(group=[name]), "prime") for name in groups]
    np.testing.assert_allclose([line["c"] for line in lines], 0.91 * CRITICAL, rtol=1e-3)
    np.testing.assert_allclose([line["low"] / line["high"] for line in lines], 0.9 / 0.92, rtol=1e-3)
    assert module.power(ds, "prime")["power"] == pytest.approx(1, abs=1e-3)


def test_zero_init_counts_runs_that_do_not_get_there(script):
    module, time = script("li2_zero_init"), np.array([[[200.0, 50.0], [200.0, 80.0], [40.0, 60.0]]])  # share, seed, top
    ds = xr.Dataset({"measured_time": (("share", "seed", "top"), time)}, coords={"share": [0.5], "top": [1.0, 0.0]})
    (line,) = module.rows("23", ds.assign_coords(epoch=[0, 100]), 256)
    assert line["normal"] == "> 100" and line["normal, there"] == "1 of 3" and line["zero"] == 60
    assert (line["zero ahead"], line["behind"]) == (2, 1)
    assert line["normal / zero"] == pytest.approx((100 / 50 * 100 / 80 * 40 / 60) ** (1 / 3))


def test_figure_7_counts_what_generalises(script):
    module = script("li2_fig7")
    accuracy = np.array([[0.1, 0.99], [0.1, 0.96], [0.1, 0.2], [0.1, 0.94]])[None, None]
    energy = np.array([[0.5, np.nan], [0.7, 0.5], [0.5, 0.7], [0.6, 0.6]])[None, None]
    dims = ("share", "lr", "seed")
    ds = xr.Dataset(
        {
            "test_accuracy": ((*dims, "epoch"), accuracy),
            "train_accuracy": ((*dims, "epoch"), accuracy),
            "energy": ((*dims, "node"), energy),
            "whole": ((*dims, "node"), 2 * energy),
        },
        coords={"share": [1.1], "lr": [0.01]},
    )
    (line,) = module.rows("23", ds)
    assert line["generalise"] == "2 of 4" and line["nodes"] == 7 / 4 and line["energy"] == pytest.approx(4.1 / 7)
    assert line["with norms"] == pytest.approx(8.2 / 7)
