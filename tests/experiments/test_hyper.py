"""The scripts of the hypercube, memorisation and collapse, at tiny sizes."""

import csv

import pytest

from jaxdyn import experiment


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_hyper_table(script, monkeypatch, tmp_path, capsys):
    module = script("hyper_table")
    tiny = {"relevant": 3.0, "batch": 16, "dim": 6.0, "width": 6, "inputs": 6, "hidden": 8, "records": 2, "examples": 100}
    monkeypatch.setattr(module, "SCALES", {"quick": module.SMALL | tiny | {"steps": 20, "seeds": 2}})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    rows = table(tmp_path / "encoders.csv")
    assert [r["encoder"] for r in rows] == ["f, relevant bits", "g, irrelevant bits", *module.ROWS]
    assert [r["paper loss"] for r in rows][2:] == ["5.134", "", "5.039", "5.04"]
    losses = table(tmp_path / "losses.csv")
    assert float(losses[1]["relevant bits"]) == pytest.approx(float(losses[2]["relevant bits"]), abs=0.002)
    assert (tmp_path / "hyper_table.png").stat().st_size > 10_000
    capsys.readouterr()


@pytest.mark.slow
def test_memo_table(script, monkeypatch, tmp_path, capsys):
    module = script("memo_table")
    tiny = {"hidden": 16, "active": 16.0, "images": 20, "records": 2, "seeds": 2}
    monkeypatch.setattr(module, "SCALES", {"quick": tiny})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    rows = table(tmp_path / "conditions.csv")
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
    rows = table(tmp_path / "ends.csv")
    assert float(rows[0]["least cosine"]) == pytest.approx(-0.5, abs=1e-4)
    assert (tmp_path / "collapse_curve.png").stat().st_size > 10_000
    capsys.readouterr()
