"""The script of the table on mixed traces, with a small sweep."""

import csv

import pytest

import jaxdyn as jd
from jaxdyn import experiment
from jaxdyn.theories.assort.order import KINDS, Assorted

TINY = {"height": 2, "codes": 8, "vq_steps": 2.0, "width": 8, "heads": 1, "hidden": 8, "batch": 4, "held_out": 8}


@pytest.mark.slow
def test_the_script_tabulates_and_draws(script, monkeypatch, tmp_path, capsys):
    module = script("assort_table")
    grid = jd.grid(Assorted, kind=list(KINDS), **TINY)
    monkeypatch.setattr(module, "SCALES", {"quick": (grid, 2)})
    assert experiment.main(module.run, None, ["--out", str(tmp_path), "--steps", "10"], module.OPTIONS) == 0
    with open(tmp_path / "table.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["sequences"] for row in rows] == list(module.LABELS.values())
    assert all(float(row["low"]) <= float(row["right, %"]) <= float(row["high"]) for row in rows)
    assert [row["paper ProsQA, %"] for row in rows] == ["76.7", "77.5", "", "", "96.2", ""]
    assert (tmp_path / "assort_table.png").stat().st_size > 10_000
    capsys.readouterr()
