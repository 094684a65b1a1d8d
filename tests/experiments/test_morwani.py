"""The script on margins, run at a tiny size."""

import csv

from jaxdyn import experiment


def test_script_trains_tabulates_and_draws(script, monkeypatch, tmp_path, capsys):
    module = script("morwani_margin")
    monkeypatch.setattr(module, "CASES", {"quick": {"seeds": 2, "moduli": (3, 5), "nodes": 16, "steps": 400}})
    assert experiment.main(module.run, module.__doc__, ["--out", str(tmp_path)]) == 0
    with open(tmp_path / "margins.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(r["p"], r["penalty"]) for r in rows[:3]] == [("3", name) for name in module.PENALTIES] and len(rows) == 6
    assert all(float(r["margin"]) <= 1 + 1e-5 for r in rows)
    assert (tmp_path / "morwani_margin.svg").stat().st_size > 5000
    capsys.readouterr()
