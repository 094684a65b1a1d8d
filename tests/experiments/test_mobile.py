"""The script on depth at a tiny size."""

import csv
import math

import pytest

import jaxdyn as jd
from jaxdyn import experiment
from jaxdyn.theories.mobile.depth import Depth

TINY = {"batch": 2, "length": 8, "steps": 10, "records": 1, "windows": 2, "weights": 4_000}


@pytest.mark.slow
def test_it_trains_tabulates_and_draws(script, monkeypatch, tmp_path, capsys):
    module = script("mobile_depth")
    grid = jd.grid(Depth, shape=["1x8", "2x8"], lr=[1e-2, 2e-2], **TINY)
    monkeypatch.setattr(module, "SCALES", {"quick": (grid, 2)})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    with open(tmp_path / "depth.csv", newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [line["layers"] for line in lines] == ["1", "2", "30"]
    for line in lines[:2]:
        assert float(line["rate"]) in (1e-2, 2e-2) and abs(int(line["weights"]) - 4_000) <= 3 * 8 * int(line["layers"])
        assert math.log(float(line["perplexity"])) == pytest.approx(float(line["test loss"]))
    assert lines[2]["test loss"] == "", "the paper's model is not trained"
    assert (tmp_path / "mobile_depth.png").stat().st_size > 8_000
    capsys.readouterr()
