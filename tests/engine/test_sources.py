"""What a trial's numbers depend on: own helpers wherever they are, packages, declared files and variables; what cannot be seen."""

import json
import os
import subprocess
import sys

import pytest

import jaxdyn as jd
from jaxdyn.engine.reference import Ref, load_file
from jaxdyn.engine.sources import doubts, source_hash


def test_source_hash_follows_own_helpers(tmp_path, monkeypatch):
    """A helper beside the trial's file decides its numbers as much as the file itself."""
    (tmp_path / "own_trial.py").write_text("from own_helper import factor\ndef trial(s, key): ...\n")
    helper = tmp_path / "own_helper.py"
    hashes = set()
    for text in ("factor = 1\n", "factor = 2\n"):
        helper.write_text(text)
        source_hash.cache_clear()
        hashes.add(source_hash(Ref("jaxdyn_user_own_trial_0", "trial", str(tmp_path / "own_trial.py"))))
    assert len(hashes) == 2


TOPIC = """
import jaxdyn as jd
from helper_of_trial import factor
from helper_of_judge import bound

class Setting:
    width = 3

SIZE = 2

def sizes():  # a comment
    return SIZE

def trial(s, key):
    return factor * sizes()

def judge(ds):
    return bound

CLAIMS = (judge,)
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("return bound", "return bound + 1", True),
        ("CLAIMS = (judge,)", "CLAIMS = (judge, 1)", True),
        ("# a comment", "# another", True),
        ("SIZE = 2", "SIZE = 3", False),
        ("width = 3", "width = 4", False),
        ("factor * sizes()", "factor + sizes()", False),
        ("CLAIMS", "OTHERS", False),  # a module without claims counts whole
    ],
)
def test_source_hash_of_a_topic_leaves_out_judges_and_claims(tmp_path, old, new, same):
    """They stand in the trial's own file; runs that are stored stay valid when only these change."""
    file, hashes = tmp_path / "topic.py", []
    for text in (TOPIC, TOPIC.replace(old, new)):
        file.write_text(text)
        source_hash.cache_clear()
        hashes.append(source_hash(Ref("jaxdyn_user_topic_0", "trial", str(file))))
    assert (hashes[0] == hashes[1]) is same


def test_source_hash_of_a_topic_follows_what_its_trial_imports_alone(tmp_path):
    (tmp_path / "topic.py").write_text(TOPIC)
    for helper, same in (("helper_of_trial", False), ("helper_of_judge", True)):
        hashes = []
        for text in ("factor = bound = 1\n", "factor = bound = 2\n"):
            (tmp_path / f"{helper}.py").write_text(text)
            source_hash.cache_clear()
            hashes.append(source_hash(Ref("jaxdyn_user_topic_0", "trial", str(tmp_path / "topic.py"))))
        assert (hashes[0] == hashes[1]) is same


RUNS = """
import contextlib, io, json, sys
import jaxdyn as jd
from jaxdyn.engine.reference import load_file

for folder in sys.argv[1:]:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        trial = load_file(f"{folder}/trial.py")
        x = jd.sweep(trial.trial, jd.grid(trial.Cell), out=f"{folder}/out").measured_x.item()
    print(json.dumps([x, said.getvalue()]))
"""
TRIAL = """
import json
import os
import jaxdyn as jd
import numpy as np
{lines}

@jd.setting
class Cell:
    rate: jd.Swept = 1.0

def trial(s, key):
    return jd.observables(measured={{"x": s.rate * {factor}}})
"""


def run(tmp_path, folders, **variables):
    """What sweeps give and say in a process of their own, with the stores of the processes before."""
    env = {**os.environ, "JAXDYN_CACHE": str(tmp_path / "cache"), **variables}
    command = [sys.executable, "-c", RUNS, *map(str, folders)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


WAYS = {
    "helper": ("from far_helper import FACTOR", "FACTOR"),
    "helper module": ("import far_helper", "far_helper.FACTOR"),
    "declared file": ("TABLE = np.loadtxt(jd.reads('table.txt'))", "TABLE"),
    "file": ("TABLE = np.loadtxt(os.path.join(os.path.dirname(__file__), 'table.txt'))", "TABLE"),
    "declared variable": ("FACTOR = float(jd.reads_variable('FACTOR', '1'))", "FACTOR"),
    "variable": ("FACTOR = float(os.environ['FACTOR'])", "FACTOR"),
    "variable while traced": ("", "float(os.environ['FACTOR'])"),
}


def test_no_stale_runs_after_a_change_elsewhere(tmp_path):
    """A helper on the path, a file or a variable that is read: what is stored belongs to their state."""
    folders, got = [tmp_path / name.replace(" ", "_") for name in WAYS], []
    (tmp_path / "far").mkdir()
    for folder, (lines, factor) in zip(folders, WAYS.values(), strict=True):
        folder.mkdir()
        (folder / "trial.py").write_text(TRIAL.format(lines=lines, factor=factor))
    for value in ("2.0", "3.0"):
        (tmp_path / "far" / "far_helper.py").write_text(f"FACTOR = {value}\n")
        for folder in folders:
            (folder / "table.txt").write_text(value)
        path = os.pathsep.join([str(tmp_path / "far"), os.environ.get("PYTHONPATH", "")])
        got.append(run(tmp_path, folders, FACTOR=value, PYTHONPATH=path))
    for (name, (lines, factor)), *runs in zip(WAYS.items(), *got, strict=True):
        assert [number for number, _ in runs] == [2.0, 3.0], name
        declared = "os." not in lines + factor
        assert all(("its runs are made anew every time" in said) is not declared for _, said in runs), name


CELL = TRIAL.replace("{lines}", "FACTOR = 2.0\ndef scale():\n    return FACTOR").replace("{factor}", "scale()")


def test_a_name_that_is_set_anew_is_seen_in_the_same_process(tmp_path):
    (tmp_path / "cell.py").write_text(CELL.replace("{{", "{").replace("}}", "}"))
    module = load_file(tmp_path / "cell.py")
    got = []
    for factor in (2.0, 3.0, 2.0):
        module.FACTOR = factor
        for out in (None, tmp_path / "out"):
            got.append(jd.sweep(module.trial, jd.grid(module.Cell), out=out).measured_x.item())
    assert got == [2.0, 2.0, 3.0, 3.0, 2.0, 2.0]


def test_a_worker_that_would_find_another_value_refuses(tmp_path):
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    (tmp_path / "cell.py").write_text(CELL.replace("{{", "{").replace("}}", "}"))
    module = load_file(tmp_path / "cell.py")
    module.FACTOR = 5.0
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, pytest.raises(jd.UsageError, match="holds another value"):
        jd.sweep(module.trial, jd.grid(module.Cell), cluster=pool, out=tmp_path / "out")


UNSEEN = [
    ("x = open('a.txt').read()", "open"),
    ("x = np.loadtxt('a.txt')", "np.loadtxt"),
    ("from pathlib import Path\nx = Path('a').read_text()", "read_text"),
    ("x = os.environ['A']", "os.environ"),
    ("x = os.getenv('A')", "os.getenv"),
    ("import json\nx = json.load(open('a'))", "json.load"),
    ("def f():\n    return np.load('a.npy')", "np.load"),
    ("def f():\n    return np.load(jd.reads('a.npy'))", "reads inside a function"),
    ("import importlib\nx = importlib.import_module('a')", "import_module"),
]
SEEN = [
    "PATH = jd.reads('a.txt')\nx = np.loadtxt(PATH)",
    "PATH = jd.reads('a.txt')\ndef f():\n    return np.loadtxt(PATH)",
    "x = jd.reads('a.txt').read_text()",
    "os.environ.setdefault('A', '1')\nos.environ['B'] = '2'",
    "x = jd.reads_variable('A')",
    "rng = np.random.default_rng(0)\ndef load(x):\n    return x\ny = load(3)",
]


def doubts_about(tmp_path, lines):
    (tmp_path / "trial.py").write_text(TRIAL.format(lines=lines, factor="1"))
    doubts.cache_clear()
    return doubts(Ref("jaxdyn_user_trial_0", "trial", str(tmp_path / "trial.py")))


@pytest.mark.parametrize(("lines", "words"), UNSEEN)
def test_what_cannot_be_seen_is_said(tmp_path, lines, words):
    found = doubts_about(tmp_path, lines)
    assert found and words in found[0] and "trial.py:" in found[0]


@pytest.mark.parametrize("lines", SEEN)
def test_what_is_declared_or_only_written_is_no_doubt(tmp_path, lines):
    assert doubts_about(tmp_path, lines) == ()


def test_a_declared_file_that_is_not_there_is_named(tmp_path):
    (tmp_path / "trial.py").write_text("import jaxdyn as jd\nx = jd.reads('a.txt')\n")
    with pytest.raises(jd.UsageError, match=r"jd.reads\('a.txt'\): .*a.txt cannot be read \(No such file or directory\)"):
        load_file(tmp_path / "trial.py")


def test_what_is_compiled_into_python_has_a_hash():
    assert source_hash(Ref("builtins", "print")) == source_hash(Ref("builtins", "print"))
