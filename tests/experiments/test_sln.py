"""The scripts of the navigator, on few graphs and with a small network."""

import csv

import numpy as np
import pytest

from jaxdyn import experiment


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_table_beside_an_earlier_one(script, monkeypatch, tmp_path, capsys):
    module = script("sln_table")
    monkeypatch.setattr(module, "GRAPHS", {"quick": 4})
    monkeypatch.setattr(module, "LARGE", {"quick": {"nodes": [5.0, 6.0], "graphs": 3, "largest": 8, "most": 12}})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)]) == 0
    table = rows(tmp_path / "table.csv")
    exact = [r for r in table if r["graphs"].startswith("n=") and r["earlier, every"]]
    assert len(exact) == 14 * 4
    np.testing.assert_allclose([float(r["every, %"]) for r in exact], [float(r["earlier, every"]) for r in exact], atol=0.051)
    assert all((tmp_path / f"sln_{name}.png").stat().st_size > 10_000 for name in ("eigenvectors", "sizes", "walk"))
    capsys.readouterr()


def test_a_walk_is_a_shortest_path(script):
    graph, x, ends, path = script("sln_table").walked()
    assert all(graph[u, v] for u, v in zip(path, path[1:], strict=False)) and x.shape == (len(ends), 2)


@pytest.mark.slow
def test_a_network_resumes(script, monkeypatch, tmp_path, capsys):
    module = script("sln_model")
    small = {"largest": 5, "width": 8, "heads": 2, "batch": 2, "steps": 20, "problems": 12, "looked": 3, "orders": 2}
    monkeypatch.setattr(module, "SCALES", {"quick": small})
    for _ in range(2):
        assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    found = rows(tmp_path / "accuracy.csv")
    assert {r["layers"] for r in found} == {"1", "2"} and all(0 <= float(r["low"]) <= float(r["high"]) <= 1 for r in found)
    assert any(r["quantity"] == "matched correlation" for r in rows(tmp_path / "embeddings.csv"))
    capsys.readouterr()
