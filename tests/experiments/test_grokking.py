"""The scripts on grokking and on tasks of bits and sums, at a tiny size; numbers on curves and networks that are known."""

import csv
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn import experiment
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.dynamics import semiring, solutions
from jaxdyn.theories.li2.published import CRITICAL

# Every script on Li2's trained networks, run at a tiny size; its numbers on curves that are known.


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
def test_stages_are_trained_tabulated_and_drawn(name, script, monkeypatch, tmp_path, capsys):
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


# What the scripts on CoGO's trained networks make of networks whose construction is known.


FOLDER = Path(__file__).parents[2] / "experiments"


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import cogo_carriers
    import cogo_sweep

    yield cogo_sweep, cogo_carriers
    for name in ("cogo_sweep", "cogo_carriers"):
        sys.modules.pop(name, None)


@pytest.fixture
def composed(x64):
    """Two seeds of z_F4/6 on Z11: 2 and 3 order-6 frequencies, as trained networks would be stored."""
    group = parse("11")

    @jax.jit
    def composed(key):
        n = solutions.sample(key, group)
        nets = [solutions.f46(group, solutions.first(group, six), n.nu, n.xi, n.phases) for six in (2, 3)]
        return [model.to_scale(semiring.weights(x, group), group, "code") for x in nets]

    weights = np.stack(composed(jax.random.key(0)))
    dims = ("lr", "decay", "seed", "layer", "element", "node")
    return xr.Dataset({"measured_w": (dims, weights[None, None])}, coords={"lr": [0.01], "decay": [5e-5], "seed": [0, 1]})


@pytest.mark.slow
def test_orders_and_columns_of_composed_networks(scripts, composed):
    found = scripts[0].classes(composed, "11")
    np.testing.assert_array_equal(found.order.transpose("seed", ...).values.reshape(2, 5), [[6, 6, 4, 4, 4], [6, 6, 6, 4, 4]])
    assert bool(found.factorable.all())
    share = scripts[0].shares(found)
    np.testing.assert_allclose(share["order 4"].values.ravel(), [60, 40])
    np.testing.assert_allclose(share["nu=i * xi"].values.ravel(), [60, 40])
    np.testing.assert_allclose(share["nu * syn"].values.ravel(), [40, 60])
    np.testing.assert_allclose(share["other orders"].values.ravel(), 0)


def test_carriers_of_composed_networks(scripts, composed):
    found = scripts[1].parts(composed, "11")
    (line,) = scripts[1].rows(found, 11)
    assert line["left, worst"] < 1e-12 and line["|own mean|"] == pytest.approx(2**0.5)
    assert line["norm^2 / that of the composed solution"] == pytest.approx(1)


# The script on the neighbours of grokking, run at a tiny size.


def test_neighbours_are_trained_tabulated_and_drawn(script, monkeypatch, tmp_path, capsys):
    module = script("grok_neighbours")
    tiny = {
        "seeds": 2,
        "sums": {"modulus": 5, "nodes": 12, "steps": 40},
        "square": {"dimension": 4, "nodes": 8, "samples": 8, "tests": 20, "every": 2},
    }
    monkeypatch.setattr(module, "CASES", {"quick": tiny})
    assert experiment.main(module.run, module.__doc__, ["--out", str(tmp_path)]) == 0
    with open(tmp_path / "delays.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(r["alpha"]) for r in rows[:4]] == module.SCALES and len(rows) == 8
    assert all(float(r["delay"]) >= 0 and float(r["kernel"]) > 0 for r in rows)
    assert (tmp_path / "grok_neighbours.svg").stat().st_size > 5000
    capsys.readouterr()


# The script on margins, run at a tiny size.


def test_margins_are_trained_tabulated_and_drawn(script, monkeypatch, tmp_path, capsys):
    module = script("morwani_margin")
    monkeypatch.setattr(module, "CASES", {"quick": {"seeds": 2, "moduli": (3, 5), "nodes": 16, "steps": 400}})
    assert experiment.main(module.run, module.__doc__, ["--out", str(tmp_path)]) == 0
    with open(tmp_path / "margins.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(r["p"], r["penalty"]) for r in rows[:3]] == [("3", name) for name in module.PENALTIES] and len(rows) == 6
    assert all(float(r["margin"]) <= 1 + 1e-5 for r in rows)
    assert (tmp_path / "morwani_margin.svg").stat().st_size > 5000
    capsys.readouterr()


# The scripts of the hypercube, memorisation and collapse, at tiny sizes.


def test_hyper_table_trains_the_steps_that_it_is_asked_for(script, tmp_path):
    with pytest.raises(jd.UsageError, match="--steps 7 is not allowed: it is a multiple of 12"):
        script("hyper_table").train("quick", tmp_path, {"seeds": 1, "steps": 7, "records": 12}, None)


@pytest.mark.slow
def test_hyper_table(script, monkeypatch, tmp_path, capsys):
    module = script("hyper_table")
    tiny = {"relevant": 3.0, "batch": 16, "dim": 6.0, "width": 6, "inputs": 6, "hidden": 8, "records": 2, "examples": 100}
    monkeypatch.setattr(module, "SCALES", {"quick": module.SMALL | tiny | {"steps": 20, "seeds": 2}})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    rows = read(tmp_path / "encoders.csv")
    assert [r["encoder"] for r in rows] == ["f, relevant bits", "g, irrelevant bits", *module.ROWS]
    assert [r["paper loss"] for r in rows][2:] == ["5.134", "", "5.039", "5.04"]
    losses = read(tmp_path / "losses.csv")
    assert float(losses[1]["relevant bits"]) == pytest.approx(float(losses[2]["relevant bits"]), abs=0.002)
    assert (tmp_path / "hyper_table.png").stat().st_size > 10_000
    capsys.readouterr()


@pytest.mark.slow
def test_memo_table(script, monkeypatch, tmp_path, capsys):
    module = script("memo_table")
    tiny = {"hidden": 16, "active": 16.0, "images": 20, "records": 2, "seeds": 2}
    monkeypatch.setattr(module, "SCALES", {"quick": tiny})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    rows = read(tmp_path / "conditions.csv")
    assert len(rows) == 2 * len(module.ROWS) and rows[0]["paper test"] == "50.51"
    assert [r["hidden layers"] for r in rows] == ["1"] * len(module.ROWS) + ["3"] * len(module.ROWS)
    assert all(0 <= float(r[name]) <= 100 for r in rows for name in ("training accuracy", "test accuracy"))
    assert (tmp_path / "memo_table.png").stat().st_size > 10_000
    capsys.readouterr()


@pytest.mark.slow
def test_collapse_curve(script, monkeypatch, tmp_path, capsys):
    module = script("collapse_curve")
    monkeypatch.setattr(module, "SCALES", {"quick": {"each": 3, "hidden": 16, "every": 5.0, "seeds": 2}})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)]) == 0
    rows = read(tmp_path / "ends.csv")
    assert float(rows[0]["least cosine"]) == pytest.approx(-0.5, abs=1e-4)
    assert (tmp_path / "collapse_curve.png").stat().st_size > 10_000
    capsys.readouterr()
