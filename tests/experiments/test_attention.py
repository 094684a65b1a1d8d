"""The scripts on in-context regression, induction heads and token selection, at a tiny size."""

import csv

import pytest

from jaxdyn import experiment


def rows(path):
    """The lines of a table."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_curves_of_in_context_regression(script, monkeypatch, tmp_path, capsys):
    module = script("icl_curves")
    monkeypatch.setattr(module, "SEEDS", {"quick": 1})
    monkeypatch.setattr(module, "SIZES", {"length": 10, "records": 4})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)]) == 0
    plateaus, errors = rows(tmp_path / "plateaus.csv"), rows(tmp_path / "errors.csv")
    assert [float(r["flow, mean"]) for r in plateaus] == pytest.approx([float(r["theory"]) for r in plateaus], rel=0.01)
    assert len(errors) == 4 * 3 and all(float(r["SGD, mean"]) > 0 for r in errors)
    assert (tmp_path / "icl_curves.png").stat().st_size > 10_000
    capsys.readouterr()


@pytest.mark.slow
def test_phases_of_induction_heads(script, monkeypatch, tmp_path, capsys):
    module = script("ih_phases")
    monkeypatch.setattr(module, "SEEDS", {"quick": 2})
    monkeypatch.setattr(module, "SCALES", {"quick": {"length": 32, "samples": 10, "batch": 4}})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)]) == 0
    two, one = rows(tmp_path / "phases.csv")
    assert (two["layers"], one["layers"]) == ("2", "1") and float(two["by pairs"]) < float(two["by tokens"])
    assert (tmp_path / "ih_phases.png").stat().st_size > 10_000
    capsys.readouterr()


@pytest.mark.slow
def test_directions_of_token_selection(script, monkeypatch, tmp_path, capsys):
    module = script("margin_directions")
    monkeypatch.setattr(module, "SEEDS", {"quick": 6})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)]) == 0
    found = rows(tmp_path / "cosines.csv")
    assert [r["weights"] for r in found] == ["vector", "matrix"]
    assert all(float(r["least cosine of those"]) > 0.999 for r in found)
    assert (tmp_path / "margin_directions.png").stat().st_size > 10_000
    capsys.readouterr()
