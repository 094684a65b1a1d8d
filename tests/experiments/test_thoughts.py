"""The scripts on continuous thoughts, on graphs and on mixed traces, at a tiny size."""

import csv
import json

import numpy as np
import pytest
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment
from jaxdyn.data import prosqa
from jaxdyn.theories.assort.order import KINDS, Assorted
from jaxdyn.theories.coc import published
from jaxdyn.theories.coc.outcomes import CLASSES
from jaxdyn.theories.coc.released import Long

# The scripts on training with continuous thoughts, at a tiny size.


TINY = {"width": 8, "hidden": 8, "batch": 4, "samples": 2, "every": 2.0, "graphs": 12, "seeds": 2}
SCRIPTS = {
    "coc_outcomes": {"outcomes": 3},
    "coc_probability_tree": {"values": 2},
    "coc_table": {"methods": 8, "rules": 2},
    "sup_frontier": {"products": 8, "attention": 8, "walks": 2},
}


def check_values(lines):
    """Values are shares; the first candidate is the one with the larger share."""
    for line in lines:
        first, second, others = (float(line[name]) for name in ("first candidate", "second candidate", "others"))
        assert first + second + others == pytest.approx(1) and first >= second >= 0 <= others


def check_methods(lines):
    """A line for each method, next to its published accuracy."""
    assert {line["method"] for line in lines} == published.PROSQA.keys()
    for line in lines:
        assert 0 <= float(line["lowest"]) <= float(line["accuracy"]) <= float(line["highest"]) <= 100
        assert float(line["paper"]) == published.PROSQA[line["method"]][0]


def check_rules(lines):
    """What the other candidate's neighbours tell on the released variant they tell less on the balanced one."""
    released, balanced = lines
    assert all(float(released[name]) > float(balanced[name]) >= 50 for name in ("other_1", "other_2", "other_3"))


def check_range(lines):
    """The mean of all runs lies between those of the runs."""
    assert all(float(line["lowest run"]) <= float(line["mean"]) <= float(line["highest run"]) for line in lines)


def check_walks(lines):
    """A line for each network."""
    assert [int(line["network"]) for line in lines] == [0, 1]


def check_outcomes(lines):
    """Classes are shares of all problems; with all steps thought nothing is hallucinated, and the answer decides."""
    for line in lines:
        assert sum(float(line[name]) for name in CLASSES) == pytest.approx(100, abs=0.05)
    assert float(lines[-1]["hallucination"]) == 0
    assert float(lines[-1]["correct path"]) == pytest.approx(float(lines[-1]["right answers"]), abs=0.05)


CHECKS = {"outcomes": check_outcomes, "values": check_values, "methods": check_methods, "rules": check_rules, "walks": check_walks}
CHECKS |= {"products": check_range, "attention": check_range}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_continuous_thoughts_are_trained_tabulated_and_drawn(name, script, monkeypatch, tmp_path, capsys):
    module = script(name)
    monkeypatch.setattr(module, "SCALES", {"quick": TINY})
    monkeypatch.setattr(module, "GRAPHS", 20, raising=False)
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], getattr(module, "OPTIONS", {})) == 0
    for stem, count in SCRIPTS[name].items():
        with open(tmp_path / f"{stem}.csv", newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        assert len(lines) == count
        CHECKS[stem](lines)
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    capsys.readouterr()


def test_a_file_with_the_name_of_a_generated_set_is_a_set_of_its_own(script, monkeypatch, tmp_path):
    """And the generated ones are what they are without it."""
    tables = {}
    for name in ("coc_table", "coc_prosqa_graphs"):
        module = script(name)
        monkeypatch.setattr(module.prosqa, "load", lambda file, draw=module.prosqa.draw: draw(7, 5, "balanced"))
        tables[name] = module
    monkeypatch.setattr(tables["coc_table"], "GRAPHS", 20)
    alone, both = tables["coc_table"].rules(None), tables["coc_table"].rules("released")
    assert both[:2] == alone and [line["graphs"] for line in both] == ["released", "balanced", "released"] and both[2] != both[0]
    graphs, lines = tables["coc_prosqa_graphs"], []
    monkeypatch.setattr(graphs.experiment, "table", lambda out, name, rows, title: lines.extend(rows))
    monkeypatch.setattr(graphs.experiment, "figure", lambda *rest: None)
    monkeypatch.setattr(graphs, "COUNTS", {"quick": 20})
    graphs.run("quick", tmp_path, ["balanced"])
    assert [(line["graphs"], line["problems"]) for line in lines][:1] == [("balanced", 5)]
    assert ("balanced", 20) in [(line["graphs"], line["problems"]) for line in lines]


@pytest.mark.parametrize("wrong", [("--seeds", "-1"), ("--width", "40"), ("--steps", "0")])
def test_a_number_that_no_run_can_have_is_refused(wrong, script, tmp_path, capsys):
    module = script("coc_prosqa")
    assert experiment.main(module.run, None, ["--out", str(tmp_path), "--data", "none.json", *wrong], module.OPTIONS) == 2
    assert f"{' '.join(wrong)} is not allowed" in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_stored_study_is_made_once_and_extended_by_methods(script, monkeypatch, tmp_path, capsys):
    module = script("coc_prosqa")
    tiny = Long(width=32, batch=2, problems=6, steps=4, every=2, warm=2)
    monkeypatch.setattr(module, "SCALES", {"quick": (tiny, (0, 3))})
    file = tmp_path / "test.json"
    names = ("root", "target", "neg_target")
    entries = [dict(zip(names, (p.root, p.target, p.negative), strict=True)) | _graph(p) for p in prosqa.draw(9, 4)]
    file.write_text(json.dumps(entries), encoding="utf-8")
    out = tmp_path / "out"
    for methods in (["coconut"], ["coconut", "no_cot"]):
        arguments = ["--out", str(out), "--data", str(file), "--methods", *methods]
        assert experiment.main(module.run, None, arguments, module.OPTIONS) == 0
    assert sorted(p.name for p in out.glob("*.run")) == [f"{m}-{i}.run" for m in ("coconut", "no_cot") for i in (0, 3)]
    with open(out / "prosqa.csv", newline="", encoding="utf-8") as handle:
        lines = list(csv.DictReader(handle))
    assert [line["method"] for line in lines][:2] == ["coconut", "no_cot"] and "rule other_2" in {x["method"] for x in lines}
    told = json.loads((out / "coc_prosqa.json").read_text(encoding="utf-8"))
    assert [(r["method"], r["seed"]) for r in told["runs"]] == [(m, i) for m in ("coconut", "no_cot") for i in (0, 3)]
    for r in told["runs"]:
        assert r["steps"] == [0, 2, 4] and r["reached"] == 4 and len(r["next"]) == 7
        assert all(len(r[name]) == 3 and 0 <= min(r[name]) <= max(r[name]) <= 100 for name in ("accuracy", "balanced", "trees"))
    assert told["settings"]["width"] == 32 and told["settings"]["steps"] == 4 and "method" not in told["settings"]
    assert len(told["file"]["sha256"]) == 64 and told["rules"].keys() == prosqa.shortcuts(prosqa.load(file)).keys()
    assert (out / "coc_prosqa.png").stat().st_size > 8_000
    capsys.readouterr()


@pytest.mark.slow
def test_recorded_studies_are_drawn_without_training(script, tmp_path, capsys):
    module = script("coc_prosqa_record")
    record = module.load(module.RECORD)
    fig = Figure()
    module.draw(record, fig)
    for ax, courses in zip(fig.axes, module.panels(record).values(), strict=True):
        *along, rule = [np.asarray(line.get_ydata()) for line in ax.lines]
        wanted = [one[name] for one in courses for name in ("accuracy", "balanced")]
        assert len(along) == len(wanted) and all(np.array_equal(*pair) for pair in zip(along, wanted, strict=True))
        assert set(rule) == {max(one["file"] for one in record["rules"].values())}
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    with open(tmp_path / "prosqa_studies.csv", newline="", encoding="utf-8") as file:
        ends = {(r["width"], r["method"], r["seed"], r["steps"]): r["released"] for r in csv.DictReader(file)}
    assert ends["128", "coconut", "1", "16000"] == "90.0" and ends["64", "coconut", "0", "22000"] == "61.2"
    assert (tmp_path / "coc_prosqa_record.svg").stat().st_size > 8_000
    capsys.readouterr()


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"studies": [], "rules": {"a": 1}}', '{"studies": [1], "rules": {}}'])
def test_a_file_without_studies_is_refused(content, script, tmp_path, capsys):
    module = script("coc_prosqa_record")
    file = tmp_path / "record.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    assert experiment.main(module.run, None, ["--out", str(tmp_path), "--record", str(file)], module.OPTIONS) == 2
    assert f"{file} holds no studies" in capsys.readouterr().err


def _graph(p: prosqa.Problem) -> dict:
    return {"edges": p.edges.tolist(), "idx_to_symbol": list(range(p.nodes))}


@pytest.mark.slow
def test_statistics_of_sets_of_graphs(script, monkeypatch, tmp_path, capsys):
    module = script("coc_prosqa_graphs")
    monkeypatch.setattr(module, "COUNTS", {"quick": 12})
    names = ("root", "target", "neg_target")
    file = tmp_path / "valid.json"
    problems = prosqa.draw(9, 4)
    file.write_text(
        json.dumps([dict(zip(names, (p.root, p.target, p.negative), strict=True)) | _graph(p) for p in problems]), encoding="utf-8"
    )
    assert experiment.main(module.run, None, ["--out", str(tmp_path), "--data", str(file)], module.OPTIONS) == 0
    with open(tmp_path / "statistics.csv", newline="", encoding="utf-8") as handle:
        first, *rest, last = csv.DictReader(handle)
    assert first["graphs"] == "valid.json" and float(first["edges"]) == pytest.approx(np.mean([len(p.edges) for p in problems]))
    assert len(rest) == 3 and (last["problems"], last["nodes"]) == ("18686", "23.0")
    assert (tmp_path / "coc_prosqa_graphs.png").stat().st_size > 8_000
    capsys.readouterr()


# The script of the superposition construction, with a small sweep.


@pytest.mark.slow
def test_constructions_are_tabulated_and_drawn(script, monkeypatch, tmp_path, capsys):
    module = script("sup_construction")
    small = {"nodes": [8.0], "names": 12, "edges": 14, "thoughts": 5, "graphs": 4, "rows": 17.0}
    monkeypatch.setattr(module, "GRAPHS", {"quick": small})
    monkeypatch.setattr(module, "PROBLEMS", {"quick": 12})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)], module.OPTIONS) == 0
    with open(tmp_path / "supports.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6 and all(r["within reach"] == r["in the thought"] for r in rows)
    for row in rows:
        np.testing.assert_allclose([float(row["least weight"]), float(row["largest weight"])], float(row["by the theorem"]))
    with open(tmp_path / "kinds.csv", newline="", encoding="utf-8") as file:
        assert {r["digraphs"]: float(r["wrong sets"]) for r in csv.DictReader(file)} == dict.fromkeys(module.KINDS, 0.0)
    with open(tmp_path / "prosqa.csv", newline="", encoding="utf-8") as file:
        *rules, right, wrong = csv.DictReader(file)
    assert len(rules) == len(module.RULES) and float(right["generated"]) == float(right["balanced"]) == 1
    assert float(wrong["generated"]) == float(wrong["balanced"]) == 0
    assert (tmp_path / "sup_construction.png").stat().st_size > 10_000
    capsys.readouterr()


# The phase portrait of the emergence of superposition, at a tiny size.


@pytest.mark.slow
def test_portrait_of_emergence(script, monkeypatch, tmp_path, capsys):
    module = script("sup_phase_portrait")
    monkeypatch.setattr(module, "SCALES", {"quick": {"vertices": 7, "inside": 4.0}})
    monkeypatch.setattr(module, "SEEDS", {"quick": 1})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)]) == 0
    with open(tmp_path / "ratios.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(r["mu_A/mu_R"]) for r in rows] == pytest.approx([float(r["independent"]) for r in rows], abs=0.006)
    assert (tmp_path / "sup_phase_portrait.png").stat().st_size > 10_000
    capsys.readouterr()


# The scripts of the navigator, on few graphs and with a small network.


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_navigators_table_beside_an_earlier_one(script, monkeypatch, tmp_path, capsys):
    module = script("sln_table")
    monkeypatch.setattr(module, "GRAPHS", {"quick": 4})
    monkeypatch.setattr(module, "LARGE", {"quick": {"nodes": [5.0, 6.0], "graphs": 3, "largest": 8, "most": 12}})
    assert experiment.main(module.run, None, ["--out", str(tmp_path)]) == 0
    table = read(tmp_path / "table.csv")
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
    found = read(tmp_path / "accuracy.csv")
    assert {r["layers"] for r in found} == {"1", "2"} and all(0 <= float(r["low"]) <= float(r["high"]) <= 1 for r in found)
    assert any(r["quantity"] == "matched correlation" for r in read(tmp_path / "embeddings.csv"))
    capsys.readouterr()


# The script of the table on mixed traces, with a small sweep.


TRACES = {"height": 2, "codes": 8, "vq_steps": 2.0, "width": 8, "heads": 1, "hidden": 8, "batch": 4, "held_out": 8}


@pytest.mark.slow
def test_mixed_traces_are_tabulated_and_drawn(script, monkeypatch, tmp_path, capsys):
    module = script("assort_table")
    grid = jd.grid(Assorted, kind=list(KINDS), **TRACES)
    monkeypatch.setattr(module, "SCALES", {"quick": (grid, 2)})
    assert experiment.main(module.run, None, ["--out", str(tmp_path), "--steps", "10"], module.OPTIONS) == 0
    with open(tmp_path / "table.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["sequences"] for row in rows] == list(module.LABELS.values())
    assert all(float(row["low"]) <= float(row["right, %"]) <= float(row["high"]) for row in rows)
    assert [row["paper ProsQA, %"] for row in rows] == ["76.7", "77.5", "", "", "96.2", ""]
    assert (tmp_path / "assort_table.png").stat().st_size > 10_000
    capsys.readouterr()
