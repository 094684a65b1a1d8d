"""The scripts on training with continuous thoughts, at a tiny size."""

import csv

import pytest

from jaxdyn import experiment

TINY = {"width": 8, "hidden": 8, "batch": 4, "samples": 2, "every": 2.0, "graphs": 12, "seeds": 2}
SCRIPTS = {"coc_probability_tree": {"values": 2}, "coc_table": {"methods": 8, "rules": 2}, "sup_frontier": {"products": 8}}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_trains_tabulates_and_draws(name, script, monkeypatch, tmp_path, capsys):
    module = script(name)
    monkeypatch.setattr(module, "SCALES", {"quick": TINY})
    monkeypatch.setattr(module, "GRAPHS", 20, raising=False)
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], getattr(module, "OPTIONS", {})) == 0
    for stem, count in SCRIPTS[name].items():
        with open(tmp_path / f"{stem}.csv", newline="") as file:
            assert len(list(csv.DictReader(file))) == count
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    capsys.readouterr()
