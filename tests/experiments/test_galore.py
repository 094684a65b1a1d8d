"""Every script on GaLore's runs on a text, at a tiny size; the bars of memory."""

import csv

import pytest

from jaxdyn import experiment
from jaxdyn.theories.galore import table

TINY = {"width": 8, "hidden": 12, "heads": 2, "batch": 2, "length": 8, "most": 4, "steps": 40, "records": 2, "windows": 1}
SIZES = {
    "galore_ppl": {"SCALES": {"quick": TINY | {"rank": 4.0, "seeds": 2}}, "FACTORS": {"quick": [1.0]}},
    "galore_ablation": {"SCALES": {"quick": TINY | {"every": [0.0, 10.0], "rank": [2.0, 4.0], "alpha": [0.25, 1.0]}}},
    "galore_stable_rank": {"SCALES": {"quick": TINY | {"rank": 4.0}}},
}
TABLES = {"galore_ppl": ("perplexity", 9), "galore_ablation": ("ablation", 8), "galore_stable_rank": ("stable_rank", 28)}


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_a_script_trains_tabulates_and_draws(name, script, monkeypatch, tmp_path, capsys):
    module = script(name)
    for constant, value in SIZES[name].items():
        monkeypatch.setattr(module, constant, value)
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    stem, count = TABLES[name]
    assert len(read(tmp_path / f"{stem}.csv")) == count
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    capsys.readouterr()


def test_memory_bars_are_the_bytes_of_the_table(script, tmp_path, capsys):
    module = script("galore_fig3")
    assert experiment.main(module.run, None, ["--out", str(tmp_path)]) == 0
    lines = {
        (r["model"], r["method"]): {k: float(v) for k, v in r.items() if k not in ("model", "method")}
        for r in read(tmp_path / "memory.csv")
    }
    adam = lines["7B", "Adam"]
    assert adam["weights"] == adam["gradients"] == pytest.approx(adam["moments"] / 2)
    states = lines["7B", "8-bit GaLore"]
    assert states["moments"] + states["bases"] == pytest.approx(
        table.memory("7B", "galore", side="short", moments=table.EIGHT_BIT).states / table.GIB
    )
    layerwise = lines["7B", "8-bit GaLore, layer by layer"]
    assert layerwise["gradients"] == pytest.approx(2 * 32_000 * 4096 / table.GIB), "the embedding is the largest array"
    assert layerwise["total GiB"] < 24 < states["total GiB"]
    capsys.readouterr()


def test_wrong_use_is_one_sentence(script, tmp_path, capsys):
    module = script("galore_ppl")
    assert experiment.main(module.run, None, ["--text", "/no/such/place", "--out", str(tmp_path)], module.OPTIONS) == 2
    assert "/no/such/place" in capsys.readouterr().err
