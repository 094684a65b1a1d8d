"""The scripts on eviction and on networks in parts, at a tiny size."""

import csv

import pytest

from jaxdyn import experiment

SIZES = {
    "h2o_budget": {"length": 20, "width": 8, "hidden": 8, "steps": 20, "records": 2, "texts": 4, "seeds": 2},
    "dejavu_curve": {
        "width": 8,
        "hidden": 20,
        "length": 8,
        "batch": 4,
        "steps": 20,
        "fitted": 8,
        "fits": 10,
        "texts": 4,
        "seeds": 2,
    },
}
TABLES = {"h2o_budget": ("budget", 2 * 9 * 5), "dejavu_curve": ("parts", 8 * 3 + 4 * 2)}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_a_script_trains_tabulates_and_draws(name, script, monkeypatch, tmp_path, capsys):
    module = script(name)
    monkeypatch.setattr(module, "SCALES", {"quick": SIZES[name]})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    stem, count = TABLES[name]
    with open(tmp_path / f"{stem}.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == count
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    capsys.readouterr()
