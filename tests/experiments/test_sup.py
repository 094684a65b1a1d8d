"""The script of the superposition construction, with a small sweep."""

import csv

import numpy as np
import pytest

from jaxdyn import experiment


@pytest.mark.slow
def test_the_script_tabulates_and_draws(script, monkeypatch, tmp_path, capsys):
    module = script("sup_construction")
    small = {"nodes": [8.0], "names": 12, "edges": 14, "thoughts": 5, "graphs": 4, "rows": 17.0}
    monkeypatch.setattr(module, "GRAPHS", {"quick": small})
    monkeypatch.setattr(module, "PROBLEMS", {"quick": 12})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    with open(tmp_path / "supports.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6 and all(r["within reach"] == r["in the thought"] for r in rows)
    for row in rows:
        np.testing.assert_allclose([float(row["least weight"]), float(row["largest weight"])], float(row["by the theorem"]))
    with open(tmp_path / "kinds.csv", newline="", encoding="utf-8") as file:
        assert {r["digraphs"]: float(r["wrong sets"]) for r in csv.DictReader(file)} == dict.fromkeys(module.KINDS, 0.0)
    with open(tmp_path / "prosqa.csv", newline="", encoding="utf-8") as file:
        *rules, right, wrong = csv.DictReader(file)
    assert len(rules) == len(module.RULES) and float(right["generated"]) == float(right["balanced"]) == 1
    assert float(wrong["generated"]) == float(wrong["balanced"]) == 0
    assert (tmp_path / "sup_construction.png").stat().st_size > 10_000
    capsys.readouterr()
