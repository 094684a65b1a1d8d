"""Every script on GaLore's runs on a text, at a tiny size; the bars of memory."""

import csv

import pytest
import xarray as xr

from jaxdyn import experiment
from jaxdyn.theories.galore import table
from tests.models.hugging import needs_models
from tests.models.small import spoken

TINY = {"width": 8, "hidden": 12, "heads": 2, "batch": 2, "length": 8, "most": 4, "steps": 40, "records": 2, "windows": 1}
SIZES = {
    "galore_ppl": {"SCALES": {"quick": TINY | {"rank": 4.0, "seeds": 2}}, "FACTORS": {"quick": [1.0]}},
    "galore_ablation": {"SCALES": {"quick": TINY | {"every": [0.0, 10.0], "rank": [2.0, 4.0], "alpha": [0.25, 1.0]}}},
    "galore_stable_rank": {"SCALES": {"quick": TINY | {"rank": 4.0}}},
}
TABLES = {"galore_ppl": ("perplexity", 10), "galore_ablation": ("ablation", 8), "galore_stable_rank": ("stable_rank", 28)}


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def check_perplexity(lines, ds):
    """Every method's perplexity is that of its runs, and full Adam is its own measure."""
    means = ds.measured_perplexity.mean("seed").values.ravel()
    assert [float(r["perplexity"]) for r in lines] == pytest.approx(means)
    assert (float(lines[0]["over full Adam"]), float(lines[0]["+- ratio"])) == (1, 0)


def check_ablation(lines, ds):
    """A line has the mean of the cell that it names."""
    for r in lines:
        cell = {"alpha": float(r["alpha"]), "rank": float(r["rank"]), "every": 0.0 if r["T"] == "never" else float(r["T"])}
        assert float(r["perplexity"]) == pytest.approx(float(ds.measured_perplexity.sel(cell).mean()))


def check_stable_rank(lines, ds):
    """Both methods start from one gradient; no stable rank exceeds the matrix's smaller side."""
    starts = [[r["start"] for r in lines if r["method"] == method] for method in ("full Adam", "GaLore")]
    assert starts[0] == starts[1]
    assert all(1 <= float(r["least"]) <= min(float(r["start"]), float(r["end"])) <= TINY["hidden"] for r in lines)


CHECKS = {"galore_ppl": check_perplexity, "galore_ablation": check_ablation, "galore_stable_rank": check_stable_rank}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_a_script_trains_tabulates_and_draws(name, script, monkeypatch, tmp_path, capsys):
    module = script(name)
    for constant, value in SIZES[name].items():
        monkeypatch.setattr(module, constant, value)
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    stem, count = TABLES[name]
    lines = read(tmp_path / f"{stem}.csv")
    assert len(lines) == count
    CHECKS[name](lines, xr.load_dataset(tmp_path / f"{stem}.nc", engine="h5netcdf"))
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    capsys.readouterr()


@pytest.mark.slow
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


@pytest.mark.slow
@needs_models
def test_a_model_is_fine_tuned_by_every_method_and_runs_resume(script, monkeypatch, tmp_path, capsys):
    module = script("galore_finetune")
    for name, value in {"LENGTH": 16, "WINDOWS": 1, "RANK": 2, "EVERY": 3, "RECORDS": 2}.items():
        monkeypatch.setattr(module, name, value)
    fields, _ = spoken(tmp_path)
    command = ["--out", str(tmp_path / "out"), "--model", fields["model"], "--text", fields["text"], "--steps", "4"]
    assert experiment.main(module.run, None, command, module.OPTIONS) == 0
    lines = read(tmp_path / "out" / "finetune.csv")
    assert [r["method"] for r in lines] == list(module.METHODS) and {r["steps"] for r in lines} == {"4"}
    assert len({r["start"] for r in lines}) == 1
    assert len({r["end"] for r in lines}) == len(lines) - 1  # moments this small are not stored in 8 bits
    for r in lines:
        assert float(r["arrays, GiB"]) == pytest.approx(float(r["calculator, GiB"]), rel=0.01), r["method"]
    assert float(lines[1]["arrays, GiB"]) < float(lines[0]["arrays, GiB"])  # GaLore's and Adam's
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.run")}
    assert experiment.main(module.run, None, command, module.OPTIONS) == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.run")} == before
    capsys.readouterr()
