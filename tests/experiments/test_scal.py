"""The scripts of scaling laws, at tiny sizes."""

import csv

import pytest

from jaxdyn import experiment

TINY = {"width": [4, 6, 8, 12], "vocabulary": 32, "least": 6.9, "budgets": 4, "windows": 2, "length": 16}


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_scal_table(script, monkeypatch, tmp_path, capsys):
    module = script("scal_table")
    monkeypatch.setattr(module, "SCALES", {"quick": {"seeds": 2, "repeats": 20, "laws": 2}})
    monkeypatch.setattr(module, "LADDER", TINY)
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    parameters = table(tmp_path / "parameters.csv")
    assert float(parameters[2]["a"]) == pytest.approx(0.5126, abs=1e-4)
    rows = table(tmp_path / "exponents.csv")
    assert [r["paper a"] for r in rows] == ["0.5", "0.49", "0.46", "", "0.73"]
    assert float(rows[2]["law, exact"]) == pytest.approx(0.5126, abs=1e-4)
    assert float(rows[2]["law, noise 2.5%"]) < 0.5126 < float(rows[2]["law, noise 97.5%"])
    assert len(table(tmp_path / "searches.csv")) == 4
    assert (tmp_path / "scal_table.png").stat().st_size > 10_000
    capsys.readouterr()


@pytest.mark.slow
def test_scal_ladder(script, monkeypatch, tmp_path, capsys):
    module = script("scal_ladder")
    monkeypatch.setattr(module, "SCALES", {"quick": TINY | {"factor": [0.5, 1.0]}})
    assert experiment.main(module.run, None, ["--out", str(tmp_path), "--seeds", "2"], module.OPTIONS) == 0
    losses = table(tmp_path / "losses.csv")
    assert len(losses) == 16 and all(1 < float(r["test loss"]) < 4 for r in losses)
    rows = table(tmp_path / "exponents.csv")
    assert [r["paper a"] for r in rows] == 2 * ["0.5", "0.49", "0.46"]
    assert (tmp_path / "scal_ladder.png").stat().st_size > 10_000
    capsys.readouterr()
