"""Which recorded results are current, and what renewal makes of the others: toy results in a folder of the test."""

import contextlib
import dataclasses
import importlib.util
import json
import os
import time

import jax
import pytest

import jaxdyn as jd
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.catalogue import library, registry
from jaxdyn.engine.judging.check import Check
from jaxdyn.engine.verification import origin
from jaxdyn.engine.verification.origin import UNRECORDED, Changes
from jaxdyn.errors import UsageError
from jaxdyn.maintain import ahead, renew
from jaxdyn.maintain import atlas as maps
from jaxdyn.report import atlas, probe, studies

from ..engine.conftest import TOYS

CURRENT, OLD = Changes(), Changes((UNRECORDED,))
SCRIPT = (
    '"""A question."""\nfrom common import publish\nfrom jaxdyn.maintain.renew import made_by\nimport jaxdyn.stats\npublish(1)\n'
)


@pytest.fixture
def law():
    return load_file(TOYS).CLAIMS[0]


@pytest.fixture
def root(tmp_path, monkeypatch, law):
    """A checkout with one study, which is older than fingerprints; the cache is the test's own."""
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "recorded_folder", lambda prefix, kind: tmp_path / prefix / kind)
    monkeypatch.setattr(registry, "all_claims", lambda *_: {law.id: law})
    monkeypatch.setattr(os, "nice", lambda more: 0)
    write(tmp_path, {"id": law.id, "verdict": "upheld", "expected": "upheld", "command": f"jaxdyn verify {law.id} --scale paper"})
    return tmp_path


def write(root, entry):
    """Store a study with this entry."""
    file = root / "toy" / "studies" / "toy.decay.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {"claim": entry, "environment": {"date": "2026-11-22 15:01 UTC", "jaxdyn": "0.1.0"}, "figure": None}
    file.write_text(json.dumps(content), encoding="utf-8")


def change(root, **parts):
    """Store the study as if what it was made from had been another."""
    entry = studies.read_study("toy.decay")["claim"]
    write(root, entry | {"made_from": entry["made_from"] | parts})


def counted(root, kind="studies", verbose=True):
    return list(renew.check(root, [kind], verbose))


def test_a_study_is_made_anew_and_stored(root, law, capsys):
    assert counted(root) == ["0 of 1 studies are current", f"  toy.decay: {UNRECORDED}"]
    assert "comparing studies" in capsys.readouterr().err
    (line,) = renew.renew(root, 5, ["studies"])
    assert line.startswith("toy.decay: upheld; ") and line.endswith(" s (1 of 1 studies current)")
    study = studies.read_study("toy.decay")
    assert study["claim"]["runs"] == 48 and study["claim"]["scale"] == "paper" and studies.read_data("toy.decay")
    assert counted(root) == ["1 of 1 studies are current"] and list(renew.renew(root, 5, ["studies"])) == []


def test_what_has_changed_decides_what_is_done(root, law, monkeypatch):
    """Only a changed judge is content with the kept data."""
    list(renew.renew(root, 5, ["studies"]))
    before = studies.read_study("toy.decay")["claim"]
    plans, run_plan = [], renew.run_plan
    monkeypatch.setattr(renew, "run_plan", lambda plan, *rest, **more: plans.append(plan) or run_plan(plan, *rest, **more))
    # the judge
    change(root, code="another", keys=["another"])
    assert counted(root)[1:] == ["  toy.decay: the judge changed"]
    (line,) = renew.renew(root, 5, ["studies"])
    assert "upheld, judged on the kept data" in line and plans == []
    assert studies.read_study("toy.decay")["claim"] == before and studies.read_data("toy.decay") and not counted(root)[1:]
    # the judge, without data
    change(root, code="another")
    (root / "toy" / "studies" / "toy.decay.npz").unlink()
    (record,) = renew.records(root, ["studies"])["studies"]
    assert record.seconds(set()) == renew.JUDGING, "an earlier call has left its runs in the cache folder"
    assert "upheld; " in next(renew.renew(root, 5, ["studies"])) and len(plans) == 1
    assert plans[0].done == plans[0].runs, "the runs are in the cache folder"
    # all else
    for parts, words in (
        ({"programs": ["another"], "keys": ["another"]}, "the program changed"),
        ({"runs": "another"}, "the settings or seeds changed"),
        ({"runs": "another", "code": "another"}, "the judge and the settings or seeds changed"),
        ({"jax": "0.1"}, "made with JAX 0.1"),
    ):
        change(root, **parts)
        assert counted(root)[1:] == [f"  toy.decay: {words}"]
        ran = len(plans)
        assert "upheld; " in next(renew.renew(root, 5, ["studies"])) and len(plans) == ran + 1


def test_many_programs_are_traced_together(root, monkeypatch, capsys):
    """Those whose code has changed since."""
    traced = []
    monkeypatch.setattr(renew, "MANY", 1)
    monkeypatch.setattr(renew, "processes", lambda count: contextlib.nullcontext("a pool"))
    monkeypatch.setattr(renew.direct, "facts_of", lambda programs, pool: traced.append((len(programs), pool)))
    list(renew.renew(root, 5, ["studies"]))
    for parts in ({}, {"keys": ["another"], "jax": "0.1"}, {"keys": ["another"], "jax": jax.__version__}):
        change(root, **parts)
        assert traced == [] and counted(root)
    assert traced == [(1, "a pool")] and "tracing 1 program whose" in capsys.readouterr().err


def test_other_versions_are_counted_apart(root):
    list(renew.renew(root, 5, ["studies"]))
    change(root, jax="0.1")
    assert counted(root, verbose=False) == ["0 of 1 studies are current, 1 made with other versions"]


def test_kept_data_that_leave_a_check_undecided_are_not_enough(root, law, monkeypatch):
    list(renew.renew(root, 5, ["studies"]))
    change(root, code="another")
    growing = dataclasses.replace(law, max_seeds=32)
    monkeypatch.setattr(registry, "all_claims", lambda *_: {law.id: growing})
    conclude = renew.conclude
    open_check = Check("open", 0.5, (0.0, 0.4), None)
    monkeypatch.setattr(renew, "conclude", lambda *given: dataclasses.replace(conclude(*given), checks=[open_check]))
    assert "kept data" not in next(renew.renew(root, 5, ["studies"]))


def test_errors_are_reported_and_not_stored(root, law, monkeypatch):
    def judge(ds):
        raise KeyError("gone")

    broken = dataclasses.replace(law, judge=judge)
    monkeypatch.setattr(registry, "all_claims", lambda *_: {law.id: broken})
    (line,) = renew.renew(root, 5, ["studies"])
    assert "not stored: error" in line and "gone" in line and "(0 of 1 studies current)" in line
    monkeypatch.setattr(registry, "all_claims", lambda *_: {law.id: law})
    list(renew.renew(root, 5, ["studies"]))
    change(root, code="another")
    monkeypatch.setattr(registry, "all_claims", lambda *_: {law.id: broken})
    (line,) = renew.renew(root, 5, ["studies"])
    assert "not stored: error" in line and studies.read_study(law.id)["claim"]["verdict"] == "upheld"


def test_what_is_not_finished_in_time_is_resumed(root, monkeypatch):
    monkeypatch.setattr(renew, "run_plan", lambda *_, **__: [])
    (line,) = renew.renew(root, 5, ["studies"])
    assert "toy.decay: not finished, to be resumed" in line and "0 of 1" in line


def test_studies_that_cannot_be_made_here_are_named(root, law, monkeypatch):
    entry = studies.read_study(law.id)["claim"]
    write(root, entry | {"command": f"{entry['command']} --set gone=1"})
    (line,) = renew.renew(root, 5, ["studies"])
    assert line.startswith("not renewed: toy.decay, ") and "gone" in line
    write(root, entry)
    task_of = studies.task_of
    lacking = lambda *given, **more: dataclasses.replace(task_of(*given, **more), missing="the model is not here")  # noqa: E731
    monkeypatch.setattr(studies, "task_of", lacking)
    assert list(renew.renew(root, 5, ["studies"])) == ["not renewed: toy.decay, the model is not here"]


def test_an_interruption_loses_nothing_that_is_finished(root, monkeypatch, capsys):
    from jaxdyn.maintain import __main__ as command

    def interrupted(until):
        raise KeyboardInterrupt

    list(renew.renew(root, 5, ["studies"]))
    made = [renew.Record("studies", "a", OLD, renew=lambda until: "upheld", costs={"a": 1.0}, unit="a")]
    made += [renew.Record("studies", "b", OLD, renew=interrupted, costs={"b": 2.0}, unit="b")]
    pretend(monkeypatch, made)
    assert command.main(["renew", "--minutes", "1", "--only", "studies", "--root", str(root)]) == 130
    said = capsys.readouterr()
    assert said.out.startswith("a: upheld; ") and "interrupted: what is finished is stored" in said.err


def pretend(monkeypatch, found, kind="studies"):
    monkeypatch.setitem(renew.KINDS, kind, (kind, lambda root, whole: iter(found)))


def test_cheap_and_old_ones_come_first_and_what_is_shared_is_paid_once(tmp_path, monkeypatch):
    now, begun = [0.0], []

    def record(name, cost, date="2026-11-22", parts=None, changed=OLD, **more):
        def renewed(until):
            begun.append(name)
            now[0] += cost
            return "upheld"

        return renew.Record("studies", name, changed, date, parts or {name: cost}, renewed, name, **more)

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(os, "nice", lambda more: 0)
    found = [
        record("current", 0.0, changed=CURRENT),
        record("long", 500.0, date="2100-01-01"),
        record("versions", 1.0, changed=Changes(versions="JAX 0.1")),
        record("new", 20.0, date="2100-01-01"),
        record("old", 20.0, date="2000-01-01"),
        record("undated", 60.0, date=""),
        record("sibling", 400.0, date="2100-01-01", parts={"long": 400.0}),
        record("longest", 50_000.0),
        record("hindered", 1.0, obstacle="it needs torch"),
    ]
    pretend(monkeypatch, found)
    lines = list(renew.renew(tmp_path, 20, ["studies"]))
    assert begun == ["old", "undated", "new", "sibling", "long", "versions", "longest"]
    assert "(2 of 9 studies current)" in lines[0] and lines[-1] == "not renewed: hindered, it needs torch"


def test_what_does_not_fit_is_begun_only_if_nothing_else_is_left(tmp_path, monkeypatch):
    now, begun = [0.0], []

    def record(name, cost):
        def renewed(until):
            begun.append(name)
            now[0] += min(cost, until - now[0])

        return renew.Record("studies", name, OLD, "2026-11-22", {name: cost}, renewed, name)

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(os, "nice", lambda more: 0)
    pretend(monkeypatch, [record("long", 7200.0), record("longer", 72000.0), record("short", 30.0)])
    lines = list(renew.renew(tmp_path, 1, ["studies"]))
    assert begun == ["short", "long"] and lines[-1] == "takes longer than 1 min: longer, 20 h 0 min"


def test_a_map_is_made_anew(root, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("JAXDYN_CACHE", str(root / "cache"))
    monkeypatch.setattr(os, "nice", lambda more: 0)
    monkeypatch.setattr(library, "recorded_folder", lambda prefix, kind: root / prefix / kind)
    law = jd.AtlasMap("law", "A law", "cal.uv_eos", ("u=1:3", "v=.1:.3"), "It holds.", 9, 1)
    monkeypatch.setattr(library, "maps", lambda prefix=None: (law,))
    assert counted(root, "maps") == ["0 of 0 maps are current"]
    maps.make_maps(root / "out", ["law"], workers=1)
    assert counted(root, "maps") == ["1 of 1 maps are current"]
    file = root / "cal" / "maps" / "law.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    made_from = content["map"]["made_from"]
    cases = {"the program": {"programs": [], "keys": []}, "the judge": {"code": "another"}}
    for words, parts in cases.items():
        file.write_text(json.dumps(content | {"map": content["map"] | {"made_from": made_from | parts}}), encoding="utf-8")
        assert counted(root, "maps")[1:] == [f"  law: {words} changed"]
    (line,) = renew.renew(root, 5, ["maps"])
    assert line.startswith("law: stored; ") and counted(root, "maps") == ["1 of 1 maps are current"]
    for other in (dataclasses.replace(law, seeds=2), dataclasses.replace(law, over=("gone=1:3",))):
        assert str(maps.changes(other, atlas.read_map(law))) == "the settings or seeds changed"
    del content["map"]["made_from"]
    assert maps.changes(law, content) == OLD


def test_a_probe_page_says_what_made_it(root, monkeypatch):
    made_from = origin.made_from((), "", "the code of then")
    html = f'<meta name="made-from" content="{json.dumps(made_from).replace(chr(34), "&#34;")}">'
    (root / "docs").mkdir()
    (root / "docs" / "probe.html").write_text(html, encoding="utf-8")
    (root / "docs" / "other.html").write_text("<p>", encoding="utf-8")
    words = f"  docs/probe.html: {probe.INSTRUMENTS} changed"
    assert counted(root, "probes") == ["0 of 1 probe pages are current", words]
    assert "a model that is not part of the checkout" in next(renew.renew(root, 5, ["probes"]))


def test_a_benchmark_is_run_anew(root, monkeypatch):
    folder = root / "benchmarks"
    (root / renew.RESULTS).mkdir(parents=True)
    body = "import json, pathlib\nfrom jaxdyn.maintain.renew import made_by\nhere = pathlib.Path(__file__)\n"
    body += 'for name in ("speed", "speed_long"):\n    text = json.dumps({"made_from": made_by(here, 1.0)})\n'
    body += '    (here.parent / "results" / f"{name}.json").write_text(text, encoding="utf-8")\n'
    texts = {"speed": body, "broken": "raise SystemExit('no such model')\n"}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    for name in ("speed", "speed_long", "broken", "unknown"):
        (root / renew.RESULTS / f"{name}.json").write_text(json.dumps({"date": "2026-11-22", "made_from": None}), encoding="utf-8")
    assert counted(root, "benchmarks", verbose=False) == ["0 of 4 benchmark tables are current"]
    lines = list(renew.renew(root, 60, ["benchmarks"]))
    assert sorted(line.split(";")[0] for line in lines) == [
        "broken: broken.py failed: no such model",
        "not renewed: unknown, no benchmark makes it",
        "speed, speed_long: stored",
    ]
    assert counted(root, "benchmarks", verbose=False) == ["2 of 4 benchmark tables are current"]
    (root / "experiments").mkdir()
    (root / "experiments" / "study.py").write_text("", encoding="utf-8")
    made_from = renew.made_by(root / "experiments" / "study.py", 1.0) | {"code": "another"}
    (root / renew.RESULTS / "unknown.json").write_text(json.dumps({"made_from": made_from}), encoding="utf-8")
    assert "not renewed: unknown, `python experiments/study.py` makes it" in renew.renew(root, 60, ["benchmarks"])


@pytest.fixture
def benchmarks(tmp_path):
    """A checkout with two benchmarks, one of which uses torch, and what they share."""
    (tmp_path / renew.RESULTS).mkdir(parents=True)
    files = {
        "speed": SCRIPT,
        "speed_long": "import torch\n",
        "common": "import json\ndef publish(x): ...\n",
        "apart": "x = 'other'\n",
    }
    for name, text in files.items():
        (tmp_path / "benchmarks" / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


def test_the_code_of_a_table_is_that_of_its_script_and_of_what_this_imports(benchmarks):
    script = benchmarks / "benchmarks" / "speed.py"
    content = {"made_from": renew.made_by(script, 12.4)}
    assert content["made_from"]["script"] == "benchmarks/speed.py" and content["made_from"]["seconds"] == 12
    assert [file.name for file in renew.scripts_behind(script)] == ["common.py", "speed.py"]
    script.write_text(SCRIPT.replace("A question", "Another question"), encoding="utf-8")
    (benchmarks / "benchmarks" / "apart.py").write_text("x = 2\n", encoding="utf-8")
    assert not renew.table_changes(content, script), "neither documentation nor other scripts count"
    for name, text in (("speed", SCRIPT.replace("(1)", "(2)")), ("common", "def publish(x): return x\n")):
        file = benchmarks / "benchmarks" / f"{name}.py"
        before = file.read_text(encoding="utf-8")
        file.write_text(text, encoding="utf-8")
        assert str(renew.table_changes(content, script)) == "the code of the benchmark changed"
        file.write_text(before, encoding="utf-8")
    assert not renew.table_changes(content, script)
    script.write_text(SCRIPT.replace("jaxdyn.stats", "jaxdyn.flow"), encoding="utf-8")
    assert renew.table_changes(content, script).reasons == (renew.BENCHMARK,)


def test_other_versions_and_older_tables_are_named(benchmarks):
    script = benchmarks / "benchmarks" / "speed.py"
    content = {"made_from": renew.made_by(script, 1.0) | {"jax": "0.1"}}
    assert str(renew.table_changes(content, script)) == "made with JAX 0.1"
    assert str(renew.table_changes({}, script)) == "recorded before fingerprints were kept"
    assert renew.table_changes({"made_from": renew.made_by(script, 1.0)}, None).reasons == (renew.BENCHMARK,), "its script is gone"


def test_the_script_of_a_table_is_recorded_or_found_by_name(benchmarks):
    folder = benchmarks / "benchmarks"
    (folder / "apart.py").write_text('publish("strange")\n', encoding="utf-8")
    for name, script in (("speed", "speed"), ("speed_long_whole", "speed_long"), ("strange", "apart"), ("nothing", None)):
        assert renew.script_of(benchmarks, name, {}) == (script and folder / f"{script}.py")
    made_from = renew.made_by(folder / "speed.py", 1.0)
    assert renew.script_of(benchmarks, "nothing", {"made_from": made_from}) == folder / "speed.py"
    assert renew.script_of(benchmarks, "speed", {"made_from": made_from | {"script": "benchmarks/gone.py"}}) is None


def test_tables_are_those_of_benchmarks(benchmarks):
    for name in ("speed", "ahead"):
        (benchmarks / renew.RESULTS / f"{name}.json").write_text(json.dumps({"question": name}), encoding="utf-8")
    assert renew.stored_tables(benchmarks) == {"speed": {"question": "speed"}}


def test_what_needs_torch_says_so_where_it_is_missing(benchmarks, monkeypatch):
    folder = benchmarks / "benchmarks"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "needs torch" in renew.lacks(folder / "speed_long.py") and renew.lacks(folder / "speed.py") == ""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    assert renew.lacks(folder / "speed_long.py") == ""


def test_programs_are_compiled_anew(root, monkeypatch):
    done = []

    def written(platform, seconds, file):
        done.append(platform)
        if platform == "tpu":
            raise UsageError("the compiler for tpu is not installed")
        return 2, 2

    monkeypatch.setattr(ahead, "changes", lambda platform, file: {"a": CURRENT, "b": Changes((ahead.NEVER,))})
    monkeypatch.setattr(ahead, "write", written)
    assert counted(root, "ahead")[:2] == ["2 of 4 programs compiled ahead of time are current", "  H100: b: never compiled"]
    lines = list(renew.renew(root, 5, ["ahead"]))
    assert done == ["cuda", "tpu"] and lines[0].startswith("cuda: stored; ") and "tpu is not installed" in lines[1]
    monkeypatch.setattr(ahead, "write", lambda *_: (1, 2))
    assert "not finished, to be resumed" in next(renew.renew(root, 5, ["ahead"]))
