"""The scripts on language models, at a tiny size: optimisers and memory, depth, scaling, eviction, parts and streaming."""

import csv
import math

import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn import experiment
from jaxdyn.theories.galore import table
from jaxdyn.theories.h2o.ppl_budget.claims import LABELS
from jaxdyn.theories.mobile.depth import Depth
from tests.models.hugging import needs_models
from tests.models.small import spoken

# Every script on GaLore's runs on a text, at a tiny size; the bars of memory.


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
def test_galore_is_trained_tabulated_and_drawn(name, script, monkeypatch, tmp_path, capsys):
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


def test_wrong_use_of_memory_bars_is_one_sentence(script, tmp_path, capsys):
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


# The table of memory at 7B: what is counted follows the published cells.


def test_counted_bytes_follow_the_published_ones(script, tmp_path, capsys):
    module = script("galore_memory")
    assert experiment.main(module.run, None, ["--out", str(tmp_path)]) == 0
    with (tmp_path / "third_party.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [int(row["published GB"]) for row in lines] == [40, 28, 29, 30, 18, 36]
    for row in lines:
        assert float(row["counted GB"]) == pytest.approx(float(row["published GB"]), abs=4)
        assert float(row["counted minus first"]) == pytest.approx(float(row["published minus first"]), abs=4)
    assert (tmp_path / "memory.png").stat().st_size > 10_000
    capsys.readouterr()


# The scripts of scaling laws, at tiny sizes.


LADDER = {"width": [4, 6, 8, 12], "vocabulary": 32, "least": 6.9, "budgets": 4, "windows": 2, "length": 16}


@pytest.mark.slow
def test_scal_table(script, monkeypatch, tmp_path, capsys):
    module = script("scal_table")
    monkeypatch.setattr(module, "SCALES", {"quick": {"seeds": 2, "repeats": 20, "laws": 2}})
    monkeypatch.setattr(module, "LADDER", LADDER)
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    parameters = read(tmp_path / "parameters.csv")
    assert float(parameters[2]["a"]) == pytest.approx(0.5126, abs=1e-4)
    rows = read(tmp_path / "exponents.csv")
    assert [r["paper a"] for r in rows] == ["0.5", "0.49", "0.46", "", "0.73"]
    assert float(rows[2]["law, exact"]) == pytest.approx(0.5126, abs=1e-4)
    assert float(rows[2]["law, noise 2.5%"]) < 0.5126 < float(rows[2]["law, noise 97.5%"])
    assert len(read(tmp_path / "searches.csv")) == 4
    assert (tmp_path / "scal_table.png").stat().st_size > 10_000
    capsys.readouterr()


@pytest.mark.slow
def test_scal_ladder(script, monkeypatch, tmp_path, capsys):
    module = script("scal_ladder")
    monkeypatch.setattr(module, "SCALES", {"quick": LADDER | {"factor": [0.5, 1.0]}})
    assert experiment.main(module.run, None, ["--out", str(tmp_path), "--seeds", "2"], module.OPTIONS) == 0
    losses = read(tmp_path / "losses.csv")
    assert len(losses) == 16 and all(1 < float(r["test loss"]) < 4 for r in losses)
    rows = read(tmp_path / "exponents.csv")
    assert [r["paper a"] for r in rows] == 2 * ["0.5", "0.49", "0.46"]
    assert (tmp_path / "scal_ladder.png").stat().st_size > 10_000
    capsys.readouterr()


# The script on depth at a tiny size.


DEPTHS = {"batch": 2, "length": 8, "steps": 10, "records": 1, "windows": 2, "weights": 4_000}


@pytest.mark.slow
def test_depths_are_trained_tabulated_and_drawn(script, monkeypatch, tmp_path, capsys):
    module = script("mobile_depth")
    grid = jd.grid(Depth, shape=["1x8", "2x8"], lr=[1e-2, 2e-2], **DEPTHS)
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


# The scripts on eviction and on networks in parts, at a tiny size.


SPARSE_SIZES = {
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
SPARSE_TABLES = {"h2o_budget": ("budget", 2 * 9 * 5), "dejavu_curve": ("parts", 8 * 3 + 4 * 2)}


def check_budget(lines):
    """Everything is its own measure, at every budget; an interval holds its mean."""
    assert {r["perplexity / everything"] for r in lines if r["policy"] == LABELS["full"]} == {"1.0"}
    assert all(float(r["low"]) <= float(r["perplexity / everything"]) <= float(r["high"]) for r in lines)


def check_parts(lines):
    """An interval holds its mean; recalls are shares, which predictors alone have."""
    assert all(float(r["low"]) <= float(r["nats more"]) <= float(r["high"]) for r in lines)
    recalls = [float(r["recall"]) for r in lines if r["recall"]]
    assert all(0 <= x <= 1 for x in recalls) and 0 < len(recalls) < len(lines)


SPARSE_CHECKS = {"h2o_budget": check_budget, "dejavu_curve": check_parts}


@pytest.mark.slow
@pytest.mark.parametrize("name", SPARSE_SIZES)
def test_eviction_and_parts_are_trained_tabulated_and_drawn(name, script, monkeypatch, tmp_path, capsys):
    module = script(name)
    monkeypatch.setattr(module, "SCALES", {"quick": SPARSE_SIZES[name]})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    stem, count = SPARSE_TABLES[name]
    with open(tmp_path / f"{stem}.csv", newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == count
    SPARSE_CHECKS[name](lines)
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    capsys.readouterr()


# The script on streaming policies, at a tiny size.


STREAMED = {"text": "markov", "level": "words", "vocabulary": 30, "width": 8, "hidden": 8, "heads": 2, "length": 10, "batch": 4}
STREAMED |= {"steps": 40, "records": 2, "streams": 2, "seeds": 2}


@pytest.mark.slow
def test_streaming_policies_are_trained_tabulated_and_drawn(script, monkeypatch, tmp_path, capsys):
    module = script("stream_table")
    monkeypatch.setattr(module, "SCALES", {"quick": STREAMED})
    options = {name: option | {"default": None} for name, option in module.OPTIONS.items()}
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], options) == 0
    with open(tmp_path / "perplexity.csv", newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 24 and {line["network"] for line in lines} == {"vanilla", "zero sink", "sink token"}
    recomputed = [line for line in lines if line["policy"] == "recomputed"]
    assert [float(line["over recomputed"]) for line in recomputed] == [1, 1, 1]
    assert float(recomputed[0]["paper, Llama-2-13B"]) == 5.43 and recomputed[1]["paper, Llama-2-13B"] == ""
    assert [float(line["paper, 160M"]) for line in lines if line["policy"] == "window"] == [27.87, 29214, 1235]
    assert (tmp_path / "stream_table.png").stat().st_size > 10_000
    capsys.readouterr()


def test_wrong_use_of_streaming_policies_is_one_sentence(script, tmp_path, capsys):
    module = script("stream_table")
    assert experiment.main(module.run, None, ["--text", "/no/such/place", "--out", str(tmp_path)], module.OPTIONS) == 2
    assert "/no/such/place" in capsys.readouterr().err
