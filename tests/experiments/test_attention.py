"""The scripts on attention, at a tiny size: regression in context, induction heads, token selection, networks on a text."""

import csv
import shutil
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxdyn import experiment
from jaxdyn.text import longrun, training_run
from jaxdyn.theories.joma import published as paper

# The scripts on in-context regression, induction heads and token selection, at a tiny size.


def read(path):
    """The lines of a table."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_curves_of_in_context_regression(script, monkeypatch, tmp_path, capsys):
    module = script("icl_curves")
    monkeypatch.setattr(module, "SEEDS", {"quick": 1})
    monkeypatch.setattr(module, "SIZES", {"length": 10, "records": 4})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)]) == 0
    plateaus, errors = read(tmp_path / "plateaus.csv"), read(tmp_path / "errors.csv")
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
    two, one = read(tmp_path / "phases.csv")
    assert (two["layers"], one["layers"]) == ("2", "1") and float(two["by pairs"]) < float(two["by tokens"])
    assert (tmp_path / "ih_phases.png").stat().st_size > 10_000
    capsys.readouterr()


@pytest.mark.slow
def test_directions_of_token_selection(script, monkeypatch, tmp_path, capsys):
    module = script("margin_directions")
    monkeypatch.setattr(module, "SEEDS", {"quick": 6})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)]) == 0
    found = read(tmp_path / "cosines.csv")
    assert [r["weights"] for r in found] == ["vector", "matrix"]
    assert all(float(r["least cosine of those"]) > 0.999 for r in found)
    assert (tmp_path / "margin_directions.png").stat().st_size > 10_000
    capsys.readouterr()


# The scripts of JoMA's figure 6, Scan & Snap's figure 7 and a series of checkpoints, on a tiny text and as a user types them.


TINY = training_run.TrainingRun(max_words=50, width=8, hidden=8, columns=4, length=6, windows=2, steps=1, every=1)


def run_of(entropy, loss=None):
    records = {"entropy": np.asarray(entropy, float), "loss": np.linspace(6, 5, len(entropy)) if loss is None else np.asarray(loss)}
    return longrun.Run(100 * np.arange(len(entropy)), records, None)


def test_fig6_rows_find_dip_and_return(script):
    fig6 = script("joma_fig6")
    runs = {(1, 1e-4): [run_of([[2.5], [1.5], [1.75], [2.0]]), run_of([[2.5], [1.75], [1.5], [2.25]])]}
    (row,) = fig6.rows(runs)
    assert (row["start"], row["min"], row["end"], row["at"], row["steps"]) == (2.5, 1.5, 2.125, 150, 300)
    assert row["return"] == pytest.approx(0.625) and row["return sd"] == pytest.approx(np.std([0.5, 0.75], ddof=1))
    assert (row["paper min"], row["paper end"], row["paper best loss"]) == (1.55, 2.21, 5.357)


def test_published_numbers_have_a_curve_for_each_layer():
    for (layers, _), curves in paper.ENTROPY.items():
        assert sorted(curves) == list(range(layers))
        assert all(c["min"] < c["end"] for c in curves.values())
    assert paper.BEST_LOSS[5, 1e-4] == min(v for (depth, _), v in paper.BEST_LOSS.items() if depth == 5)


@pytest.mark.parametrize("epochs", [1, 8, 20])
def test_fig6_trains_as_many_passes_as_it_is_asked_for(script, monkeypatch, epochs):
    fig6, run = script("joma_fig6"), training_run.TrainingRun
    for windows in (12, 16, 23, 105, 2983):
        monkeypatch.setattr(run, "epoch", windows)
        s = fig6.setting(run(steps=1, every=1), "topics", 1, 1e-3, epochs, 12)
        assert abs(s.steps - epochs * windows) <= s.every / 2 and s.every <= windows / 12


@pytest.mark.slow
def test_fig6_trains_resumes_and_is_extended(script, small_text, monkeypatch, tmp_path, capsys):
    fig6 = script("joma_fig6")
    plan = {"run": TINY, "layers": (2,), "lr": (1e-2,), "seeds": (1, 2), "epochs": 1, "records": 2}
    monkeypatch.setattr(fig6, "SCALES", {"quick": plan})
    words = ["--text", str(small_text), "--out", str(tmp_path / "out")]
    assert experiment.main(fig6.run, None, words, fig6.OPTIONS) == 0
    first = read(tmp_path / "out" / "entropy.csv")
    assert [(r["layers"], r["layer"], r["seeds"]) for r in first] == [("2", "0", "2"), ("2", "1", "2")]
    assert {p.name for p in (tmp_path / "out").iterdir()} >= {"entropy.svg", "entropy.png", "runs"}
    stamps = {p: p.stat().st_mtime_ns for p in (tmp_path / "out" / "runs").iterdir()}
    assert experiment.main(fig6.run, None, words, fig6.OPTIONS) == 0
    assert read(tmp_path / "out" / "entropy.csv") == first
    assert {p: p.stat().st_mtime_ns for p in stamps} == stamps
    more = [*words, "--epochs", "2", "--seeds", "1"]
    assert experiment.main(fig6.run, None, more, fig6.OPTIONS) == 0
    row, _ = read(tmp_path / "out" / "entropy.csv")
    assert int(row["steps"]) == 2 * int(first[0]["steps"])
    capsys.readouterr()


@pytest.mark.slow
def test_fig7_reads_the_runs_of_fig6(script, small_text, monkeypatch, tmp_path, capsys):
    fig6, fig7 = script("joma_fig6"), script("joma_fig7")
    plan = {"run": TINY, "layers": (2,), "lr": (1e-2,), "seeds": (1,), "epochs": 1, "records": 2}
    monkeypatch.setattr(fig6, "SCALES", {"quick": plan})
    words = ["--text", str(small_text), "--out", str(tmp_path)]
    assert experiment.main(fig6.run, None, words, fig6.OPTIONS) == 0
    stamps = {p: p.stat().st_mtime_ns for p in (tmp_path / "runs").iterdir()}
    assert experiment.main(fig7.run, None, words, fig6.OPTIONS) == 0
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "runs").iterdir()} == stamps
    first, second = read(tmp_path / "stable_rank.csv")
    assert first["start"] == second["start"], "all layers start as copies of one"
    assert 1 <= float(first["min"]) <= float(first["end"]) <= 8
    capsys.readouterr()


@pytest.mark.slow
def test_fig8_compares_relu_with_linear_mlps(script, small_text, monkeypatch, tmp_path, capsys):
    fig8 = script("joma_fig8")
    runs = {
        ("relu", 1e-3): [run_of([[2.5], [1.5], [2.0]]), run_of([[2.5], [1.5], [2.2]])],
        ("linear", 1e-3): [run_of([[2.5], [1.5], [1.6]]), run_of([[2.5], [1.5], [1.6]])],
    }
    relu, linear = fig8.rows(runs)
    assert relu["return"] == pytest.approx(0.6) and linear["return"] == pytest.approx(0.1)
    assert relu["relu - linear"] == pytest.approx(0.5) and linear["relu - linear"] is None
    assert relu["+-"] == pytest.approx(12.706 * np.std([0.4, 0.6], ddof=1) / 2**0.5, rel=1e-3)
    at_published = {(kind, 1e-4): group for (kind, _), group in runs.items()}
    relu, linear = fig8.by_layer(at_published)
    assert (relu["layer"], relu["paper start"], relu["paper min"], relu["paper end"]) == (0, 2.51, 1.55, 2.21)
    assert (relu["min"], relu["end"]) == (1.5, pytest.approx(2.1)) and relu["paper best loss"] == 5.357
    assert linear["paper min"] is None and linear["end"] == pytest.approx(1.6)
    fig = Figure()
    fig8.draw(at_published, fig)
    squares = [[line for line in ax.lines if line.get_marker() == "s"] for ax in fig.axes]
    assert [[float(line.get_ydata()[0]) for line in each] for each in squares] == [[2.51, 1.55, 2.21], []]
    plan = {"run": TINY, "seeds": (1,), "epochs": 1, "records": 1}
    monkeypatch.setattr(sys.modules["joma_fig6"], "SCALES", {"quick": plan})
    monkeypatch.setattr(fig8, "RATES", {"quick": (1e-2,)})
    assert experiment.main(fig8.run, None, ["--text", str(small_text), "--out", str(tmp_path)], fig8.OPTIONS) == 0
    assert [r["mlp"] for r in read(tmp_path / "mlp.csv")] == ["relu", "linear"]
    assert [r["paper end"] for r in read(tmp_path / "layers.csv")] == ["", ""]  # at this rate nothing is published
    assert (tmp_path / "joma_fig8.png").stat().st_size > 10_000
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--text", "/no/such/place"], "/no/such/place"),
        (["--epochs", "0"], "--epochs 0 is not allowed: it is 1 or more"),
        (["--layers", "0"], "layers is at least 1"),
    ],
)
def test_fig6_says_what_is_wrong(script, words, said, capsys, tmp_path):
    fig6 = script("joma_fig6")
    assert experiment.main(fig6.run, None, [*words, "--out", str(tmp_path / "out")], fig6.OPTIONS) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def snap_run(maps, share, top):
    steps = np.array([0, 500, 1000, 1500])
    records = {"maps": np.asarray(maps), "entropy": np.asarray(share)[:, None], "top three": np.asarray(top)[:, None]}
    return longrun.Run(steps, records, None)


def test_fig7_numbers_and_marks(script):
    fig7 = script("snap_fig7")
    eye, blind = np.eye(4), np.full((4, 4), 0.25)
    maps = [[m] for m in (blind, eye, eye, 0.9 * eye + 0.1 * blind)]
    run = snap_run(maps, [1.0, 0.6, 0.6, 0.7], [0.5, 0.9, 0.9, 0.8])
    found = fig7.numbers(run)
    early = np.abs(eye - blind).sum(-1).mean()
    assert found["moved 0-500"] == pytest.approx(early) and found["movement ratio"] == pytest.approx(0.1)
    assert found["entropy ratio"] == pytest.approx(0.7) and found["top 3 at 1500"] == 0.8
    still = snap_run([[eye]] * 4, [1.0] * 4, [0.5] * 4)
    rows = fig7.rows({(1, "trained"): [run, run], (1, "queries and keys fixed"): [still]})
    marks = [(r["entropy ratio < 0.8"], r["movement ratio < 0.5"]) for r in rows]
    assert marks == [("True", "True"), ("False", "False")]


@pytest.mark.slow
def test_fig7_trains_tabulates_and_draws(script, small_text, monkeypatch, tmp_path, capsys):
    fig7 = script("snap_fig7")
    monkeypatch.setattr(fig7, "SCALES", {"quick": {"base": TINY, "layers": (1,), "seeds": (0,), "every": 2}})
    monkeypatch.setattr(fig7.fig7, "STEPS", 6)
    monkeypatch.setattr(fig7, "SHOWN", (0, 2, 4, 6))
    monkeypatch.setattr(fig7, "VARIANTS", {"trained": {}, "queries and keys fixed": {"query_key": 0.0}})
    assert experiment.main(fig7.run, None, ["--text", str(small_text), "--out", str(tmp_path)], fig7.OPTIONS) == 0
    trained, fixed = read(tmp_path / "attention.csv")
    assert (trained["run"], fixed["run"]) == ("trained", "queries and keys fixed")
    moved = [name for name in trained if name.startswith("moved ")]
    assert all(float(trained[name]) > float(fixed[name]) for name in moved) and moved, "fixed queries and keys move less"
    assert (tmp_path / "snap_fig7.png").stat().st_size > 10_000
    capsys.readouterr()


def test_steps_of_a_series_are_those_of_pythia(script):
    series = script("probe_series")
    assert series.steps_of(6) == [0, 1, 2, 4, 6] and series.steps_of(8) == [0, 1, 2, 4, 8]


@pytest.mark.slow
def test_a_series_is_written_resumed_and_probed(script, tmp_path, capsys):
    series = script("probe_series")
    words = ["--out", str(tmp_path), "--steps", "2", "--width", "16", "--layers", "1", "--vocabulary", "300"]
    assert experiment.main(series.run, None, words, series.OPTIONS) == 0
    before = (tmp_path / "step2" / "model.safetensors").read_bytes()
    shutil.rmtree(tmp_path / "step2")
    assert experiment.main(series.run, None, words, series.OPTIONS) == 0
    assert (tmp_path / "step2" / "model.safetensors").read_bytes() == before, "resumed from the run's file"
    assert {row["instrument"] for row in read(tmp_path / "table.csv")} > {"sinks", "streaming", "gradients"}
    page = (tmp_path / "probe" / "index.html").read_text(encoding="utf-8")
    assert "3 checkpoints, up to step2" in page and "unseen.txt" in page
    capsys.readouterr()


@pytest.mark.slow
def test_the_overview_of_scan_and_snap_is_computed_tabulated_and_drawn(script, tmp_path, capsys):
    """A class's law has the weight .6 of a common token and 1 of its own: attention starts at it, and then prefers its own."""
    assert experiment.main(script("snap_overview").run, None, ["--out", str(tmp_path)], {}) == 0
    rows = read(tmp_path / "panels.csv")
    common, share = ([float(row[name]) for row in rows] for name in ("common token", "share of the dominant one"))
    assert common[0] == pytest.approx(0.6 / 1.6) and common == sorted(common, reverse=True) and share == sorted(share)
    assert common[1] < common[0] / 2 and (tmp_path / "overview.png").stat().st_size > 10_000
    capsys.readouterr()
