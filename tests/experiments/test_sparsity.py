"""The scripts on eviction and on networks in parts, at a tiny size."""

import csv

import pytest

from jaxdyn import experiment
from jaxdyn.theories.h2o.ppl_budget.claims import LABELS

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


def check_budget(lines):
    """Everything is its own measure, at every budget; an interval holds its mean."""
    assert {r["perplexity / everything"] for r in lines if r["policy"] == LABELS["full"]} == {"1.0"}
    assert all(float(r["low"]) <= float(r["perplexity / everything"]) <= float(r["high"]) for r in lines)


def check_parts(lines):
    """An interval holds its mean; recalls are shares, which predictors alone have."""
    assert all(float(r["low"]) <= float(r["nats more"]) <= float(r["high"]) for r in lines)
    recalls = [float(r["recall"]) for r in lines if r["recall"]]
    assert all(0 <= x <= 1 for x in recalls) and 0 < len(recalls) < len(lines)


CHECKS = {"h2o_budget": check_budget, "dejavu_curve": check_parts}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_a_script_trains_tabulates_and_draws(name, script, monkeypatch, tmp_path, capsys):
    module = script(name)
    monkeypatch.setattr(module, "SCALES", {"quick": SIZES[name]})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    stem, count = TABLES[name]
    with open(tmp_path / f"{stem}.csv", newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == count
    CHECKS[name](lines)
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    capsys.readouterr()
