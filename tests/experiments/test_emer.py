"""The phase portrait of the emergence of superposition, at a tiny size."""

import csv

import pytest

from jaxdyn import experiment


@pytest.mark.slow
def test_portrait(script, monkeypatch, tmp_path, capsys):
    module = script("sup_phase_portrait")
    monkeypatch.setattr(module, "SCALES", {"quick": {"vertices": 7, "inside": 4.0}})
    monkeypatch.setattr(module, "SEEDS", {"quick": 1})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)]) == 0
    with open(tmp_path / "ratios.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(r["mu_A/mu_R"]) for r in rows] == pytest.approx([float(r["independent"]) for r in rows], abs=0.006)
    assert (tmp_path / "sup_phase_portrait.png").stat().st_size > 10_000
    capsys.readouterr()
