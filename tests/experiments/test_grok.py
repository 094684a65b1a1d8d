"""The script on the neighbours of grokking, run at a tiny size."""

import csv

from jaxdyn import experiment


def test_script_trains_tabulates_and_draws(script, monkeypatch, tmp_path, capsys):
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
