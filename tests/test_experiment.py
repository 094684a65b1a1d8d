"""What every experiment script shares."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn import experiment
from jaxdyn.engine.base.reference import load_file

TOYS = Path(__file__).parent / "engine" / "toys.py"


@pytest.fixture(autouse=True)
def as_script(monkeypatch, tmp_path):
    """As if called as ``python experiments/toy_fig1.py`` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["experiments/toy_fig1.py"])


def test_main_parses_and_calls(capsys):
    calls = []
    assert experiment.main(lambda scale, out: calls.append((scale, out)), "Doc.", []) == 0
    assert experiment.main(lambda scale, out: calls.append((scale, out)), "Doc.", ["--scale", "paper", "--out", "here"]) == 0
    assert calls == [("quick", Path("out/toy_fig1")), ("paper", Path("here"))]
    captured = capsys.readouterr()
    assert captured.out == "" and "data, tables and figures: here" in captured.err


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (jd.UsageError("the group table is no group"), 2, "the group table is no group"),
        (KeyboardInterrupt(), 130, "run the same command to resume"),
    ],
)
def test_main_turns_errors_into_one_sentence(capsys, error, code, words):
    def run(scale, out):
        raise error

    assert experiment.main(run, None, []) == code
    err = capsys.readouterr().err
    assert err.startswith("toy_fig1: ") and words in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (["--steps", "0"], "--steps 0 is not allowed: it is 1 or more"),
        (["--steps", "-3"], "--steps -3 is not allowed: it is 1 or more"),
        (["--seeds", "1", "2", "1"], "--seeds 1 2 1 is not allowed: 1 is named twice"),
        (["--steps", "1", "--seed", "0", "--seeds", "0", "1"], ""),
    ],
)
def test_main_refuses_counts_below_one_and_values_named_twice(capsys, words, refused):
    options = {"--steps": {"type": int}, "--seed": {"type": int}, "--seeds": {"type": int, "nargs": "+"}}
    code = experiment.main(lambda scale, out, **given: None, "Doc.", words, options)
    assert code == (2 if refused else 0) and refused in capsys.readouterr().err


def test_other_errors_are_not_hidden():
    def run(scale, out):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        experiment.main(run, None, [])


@pytest.mark.parametrize("words", [["--scale", "huge"], ["--nothing"]])
def test_wrong_words_exit_with_2(words, capsys):
    with pytest.raises(SystemExit) as stop:
        experiment.main(lambda scale, out: None, None, words)
    assert stop.value.code == 2
    capsys.readouterr()


def test_a_sweep_is_stored_and_resumes(tmp_path, monkeypatch):
    toys = load_file(TOYS)
    grid = jd.grid(toys.Toy, lr=[0.01, 0.02])
    ds = experiment.sweep(tmp_path, "decay", toys.decay, grid, 3)
    assert list((tmp_path / "decay" / "shards").rglob("*.nc"))
    monkeypatch.setattr("jaxdyn.engine.runs.sweep.run_chunk", None)
    assert experiment.sweep(tmp_path, "decay", toys.decay, grid, 3).identical(ds)


def test_a_table_is_printed_and_written(tmp_path, capsys):
    rows = [{"case": "a", "ours": 0.123456789, "paper": 0.12}, {"case": "b", "ours": np.float64(2.0), "paper": None}]
    experiment.table(tmp_path / "new", "numbers", rows, "Numbers")
    out = capsys.readouterr().out
    assert "Numbers" in out and "0.1235" in out and "paper" in out
    with open(tmp_path / "new" / "numbers.csv", newline="", encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    assert [r["case"] for r in read] == ["a", "b"]
    assert float(read[0]["ours"]) == 0.123456789 and read[1]["paper"] == "", "all digits, and an empty cell for None"


def test_the_deviation_of_runs_is_that_of_a_sample():
    assert experiment.deviation([1.0, 2.0, 4.0]) == pytest.approx((7 / 3) ** 0.5)  # by hand: 16/9 + 1/9 + 25/9 over 2
    assert experiment.deviation(np.array([[3.0]])) is None


def test_experiments_leave_deviations_to_it():
    scripts = (Path(__file__).parents[1] / "experiments").glob("*.py")
    texts = {script.name: script.read_text(encoding="utf-8") for script in scripts}
    assert {name: found for name, text in texts.items() if (found := re.findall(r"std\((?!.*ddof=1).*", text))} == {}


def test_a_figure_written_twice_is_the_same_bytes(tmp_path):
    def draw(fig):
        fig.subplots().plot([0, 1], [1, 2], label="x")

    for name in ("a", "b"):
        experiment.figure(tmp_path, name, draw)
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml") and "<svg" in (
        tmp_path / "a.svg"
    ).read_text(encoding="utf-8")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    for suffix in ("svg", "png"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_a_dataset_is_saved_whole(tmp_path):
    ds = xr.Dataset({"x": ("lr", np.float32([1, 2]))}, coords={"lr": [0.1, 0.2]})
    experiment.save(tmp_path / "new", "data", ds)
    experiment.save(tmp_path / "new", "data", ds)
    assert xr.load_dataset(tmp_path / "new" / "data.nc", engine="h5netcdf").identical(ds)
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["data.nc"]


def test_a_record_has_the_machine_and_the_facts_in_json(tmp_path):
    experiment.record(tmp_path / "new", "study", "How many?", rows=[{"share": 0.5, "lost": float("nan")}], settings={"width": 64})
    content = json.loads((tmp_path / "new" / "study.json").read_text(encoding="utf-8"))
    assert content["question"] == "How many?"
    assert content["rows"] == [{"share": 0.5, "lost": None}]
    assert content["settings"] == {"width": 64}
    assert {"date", "commit", "jax", "device"} <= content["environment"].keys()


@pytest.mark.parametrize(
    "write",
    [
        lambda out: experiment.table(out, "t", [{"a": 1}], "T"),
        lambda out: experiment.figure(out, "f", lambda fig: None),
        lambda out: experiment.save(out, "d", xr.Dataset()),
        lambda out: experiment.record(out, "r", "Q"),
    ],
    ids=["table", "figure", "save", "record"],
)
def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path, write):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(jd.UsageError, match="cannot write to"):
        write(tmp_path / "file" / "out")


def test_a_table_in_letters_that_the_terminal_lacks(tmp_path):
    code = "import sys\nfrom pathlib import Path\nfrom jaxdyn import experiment as e\n"
    code += "sys.exit(e.main(lambda scale, out: e.table(out, 'n', [{'\\u03b5': 1.0}], '\\u2713'), None, []))"
    ascii_ = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=ascii_, capture_output=True, encoding="utf-8")
    assert done.returncode == 0 and "\\u03b5" in done.stdout, done.stderr


def test_a_table_keeps_values_under_their_columns_and_brackets_as_they_are(tmp_path, capsys):
    rows = [{"loss [nats]": 1.5, "name": "[first]"}, {"name": "[red]x[/red]", "loss [nats]": 2.5}, {"name": "last"}]
    experiment.table(tmp_path, "numbers", rows, "Loss [nats]")
    lines = capsys.readouterr().out.splitlines()
    assert "Loss [nats]" in lines[0] and "loss [nats]" in lines[2]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if "│" in line]
    assert cells == [["1.5", "[first]"], ["2.5", "[red]x[/red]"], ["", "last"]]
