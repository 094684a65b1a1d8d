"""Programs of the package that are known without tracing them: when, and what makes them unknown again."""

import ast
import os
import subprocess
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import jaxdyn as jd
from jaxdyn.engine.base import reference
from jaxdyn.engine.base.devices import Devices, elsewhere
from jaxdyn.engine.base.reference import ref_to
from jaxdyn.engine.claims.setting import split
from jaxdyn.engine.programs import chunk, direct
from jaxdyn.engine.programs.chunk import Program, program_name
from jaxdyn.engine.runs import costs
from jaxdyn.engine.storage.cache import read_cached, write_cached
from jaxdyn.maintain.shipped import theory_programs


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """As if the command line had started this process, with an empty cache; what is traced."""
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(direct, "in_use", lambda: True)
    seen, trace = [], direct.tracing.trace_pure
    monkeypatch.setattr(direct.tracing, "trace_pure", lambda program: seen.append(program) or trace(program))
    return seen


@pytest.fixture(scope="module")
def own():
    return theory_programs(["lyu", "morwani"])[:2]


@pytest.fixture(scope="module")
def programs(toys):
    toy = Program(ref_to(toys.decay), ref_to(toys.Toy), split(toys.Toy())[0])
    return [toy, Program(ref_to(toys.solved), ref_to(toys.Flow), split(toys.Flow())[0])]


def test_known_programs_of_the_package_are_not_traced_again(alone, own, programs):
    assert direct.untraced([*own, *programs]) == {*own, *programs}
    first = direct.facts_of([*own, *programs])
    assert set(alone) == {*own, *programs} and [f["executor"] for f in first.values()][2:] == ["vmap", "map"]
    assert len({f["fingerprint"] for f in first.values()}) == 4
    del alone[:]
    assert direct.untraced([*own, *programs]) == set(programs)
    assert direct.facts_of([*own, *programs]) == first and alone == programs, "what is anybody's own is traced every time"


def test_elsewhere_everything_is_traced(alone, own, monkeypatch):
    first = direct.facts_of(own)
    monkeypatch.setattr(direct, "in_use", lambda: False)
    del alone[:]
    assert direct.facts_of(own) == first and alone == own


def test_each_platform_has_fingerprints_of_its_own(alone, own):
    here = direct.facts_of(own)
    with elsewhere(Devices("gpu", 8)):
        assert direct.untraced(own) == set(own)
        there = direct.facts_of(own)
    assert all(here[p]["fingerprint"] != there[p]["fingerprint"] for p in own)
    assert all(here[p]["bytes"] == there[p]["bytes"] for p in own)


@pytest.mark.parametrize("content", [[], None, 3, {"a": 1}, {"a": {"bytes": 1, "executor": "map"}}])
def test_the_memory_of_another_version_costs_tracing_only(alone, own, content):
    first = direct.facts_of(own)
    write_cached(direct.PROGRAMS, content)
    assert direct.facts_of(own) == first
    assert read_cached(direct.PROGRAMS).keys() == {direct.direct_key(p) for p in own}


def test_a_memory_that_cannot_be_written_costs_tracing_only(alone, own, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "file"))
    assert len(direct.facts_of(own)) == 2


def test_a_trial_that_raises_is_not_remembered(alone, toys, programs):
    bad = Program(ref_to(toys.broken), ref_to(toys.Toy), programs[0].static)
    assert direct.facts_of([bad, programs[0]])[bad]["fingerprint"] == ""
    with pytest.raises(ValueError, match="this trial is broken"):
        jd.sweep(toys.broken, jd.grid(toys.Toy))


def test_a_pool_traces_what_belongs_to_the_package(alone, own, programs, monkeypatch):
    here = direct.facts_of(own)
    write_cached(direct.PROGRAMS, {})
    sent = []
    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(pool, "submit", lambda f, one: sent.append(one) or ThreadPoolExecutor.submit(pool, f, one))
        found = direct.facts_of([*programs, *own], pool)
    assert sent == own and {p: found[p] for p in own} == here


def test_tracing_ends_when_its_time_is_over_and_what_was_traced_is_kept(alone, own, programs, monkeypatch):
    """The clock is at the number of programs whose tracing was begun."""
    monkeypatch.setattr(direct, "time", types.SimpleNamespace(monotonic=lambda: len(alone), perf_counter=time.perf_counter))
    first = direct.facts_of([*own, *programs], until=1)
    assert [*first] == own[:1] == alone, "a program that was begun is finished, and no other one is"
    assert direct.facts_of([*own, *programs], until=1) == first, "what is known needs no time"
    assert [*direct.facts_of([*own, *programs], until=3)] == [*own, programs[0]]


def test_a_pool_is_given_no_program_when_the_time_is_over(alone, own, monkeypatch):
    monkeypatch.setattr(direct, "time", types.SimpleNamespace(monotonic=lambda: len(alone), perf_counter=time.perf_counter))
    monkeypatch.setattr(direct.os, "cpu_count", lambda: 1)  # so that one program is traced at a time
    with ThreadPoolExecutor(1) as pool:
        assert [*direct.facts_of(own, pool, until=1)] == own[:1] == alone
        assert [*direct.facts_of(own, pool)] == own == alone


def test_the_seconds_of_tracing_are_remembered_by_name(alone, own, monkeypatch):
    """They outlive the key, which changes with the code; a program without them is taken for a share of its compilation."""
    monkeypatch.setattr(direct, "traced_facts", lambda program: time.sleep(0.05))
    assert direct.tracing_times() == {}
    direct.facts_of(own[:1])
    times = direct.tracing_times()
    assert times.keys() == {program_name(own[0])} and 0.05 <= times[program_name(own[0])] < 5
    assert costs.tracing_seconds(own[0], times) == times[program_name(own[0])]
    monkeypatch.setattr(costs, "program_times", lambda program: (7.0, 100.0))
    assert costs.tracing_seconds(own[1], times) == 7.0 * costs.TRACING
    write_cached(direct.TIMES, ["of another version"])
    assert direct.tracing_times() == {}


@pytest.fixture
def copied(monkeypatch, tmp_path):
    """A package of four modules in place of jaxdyn's, and a function that writes one of them."""
    files = {
        "theories/toy/topic.py": "from jaxdyn.nn import layer\nfrom jaxdyn.theories.toy import model\n",
        "theories/toy/model.py": "SIZE = 3\n",
        "nn/layer.py": "def f(x):\n    return x\n",
        "nn/other.py": "def g(x):\n    return x\n",
        "theories/toy/__init__.py": "",
        "theories/__init__.py": "",
        "nn/__init__.py": "",
    }
    monkeypatch.setattr(direct, "PACKAGE", tmp_path)
    monkeypatch.setattr(direct, "FACT_MAKERS", ())

    def write(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
        direct.modules_behind.cache_clear()
        direct.code_and_imports.cache_clear()

    for name, text in files.items():
        write(name, text)
    yield write
    direct.modules_behind.cache_clear()
    direct.code_and_imports.cache_clear()


def test_the_key_follows_the_modules_behind_a_trial_and_no_others(copied):
    def now():
        return direct.modules_behind("jaxdyn.theories.toy.topic")

    before = now()
    copied("nn/other.py", "def g(x):\n    return 2 * x\n")
    copied("nn/layer.py", 'def f(x):\n    """A layer."""\n    return x  # a comment\n')
    assert now() == before
    for name, text in (
        ("nn/layer.py", "def f(x):\n    return 2 * x\n"),
        ("theories/toy/model.py", "SIZE = 4\n"),
        ("nn/__init__.py", "a = 1"),
    ):
        copied(name, text)
        assert now() != before, name
        before = now()


TRIALS = ("data", "instruments", "models", "nn", "optim", "text", "theories")  # packages of trials and of what they use
NAMES = {"sklearn": "scikit-learn"}
IMPORTING = {"import_module", "library"}  # functions that are called with the name of a module


def imported_libraries():
    """The libraries that a module of the trials' packages, or one next to them, imports in any way, as pip calls them."""
    package = Path(jd.__file__).parent
    beside = [file for file in package.glob("*.py") if file.stem not in ("experiment", "testing")]  # commands and tests
    for file in (*beside, *(file for name in TRIALS for file in (package / name).rglob("*.py"))):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in IMPORTING:
                names += [one.value for one in node.args if isinstance(one, ast.Constant)]
            yield from (NAMES.get(top, top) for top in (name.split(".")[0] for name in names) if top not in sys.stdlib_module_names)


def test_the_key_has_the_version_of_every_library_that_trials_use():
    found = set(imported_libraries()) - {"jaxdyn"}
    assert {"sentencepiece", "gguf", "jax", "scikit-learn"} <= found <= set(direct.TRACING)


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (sys, "version_info", (3, 11, 99, "final", 0)),
        (sys, "implementation", types.SimpleNamespace(name="another")),
        (direct, "manual_hash", lambda: "another text"),
        (direct, "versions_of", lambda names: ["1.0"] * len(names)),
    ],
)
def test_the_key_counts_all_of_pythons_version_and_its_manual(monkeypatch, module, name, value):
    before = direct.surroundings.__wrapped__()
    monkeypatch.setattr(module, name, value)
    assert direct.surroundings.__wrapped__() != before
    assert len(direct.manual_hash()) in (64, 12)


def test_code_that_was_edited_in_the_meantime_is_nobody_elses(copied, monkeypatch):
    """The file may have been loaded before: what the old code gives must not be taken for what the new one would give."""
    monkeypatch.setattr(reference, "BEGAN", time.time_ns() + 10**9)  # a process that begins after all that is written here
    before = direct.modules_behind("jaxdyn.theories.toy.topic")
    copied("nn/other.py", "def g(x):\n    return -x\n")
    assert direct.modules_behind("jaxdyn.theories.toy.topic") == before
    monkeypatch.setattr(reference, "BEGAN", time.time_ns() - 10**9)
    copied("nn/layer.py", "def f(x):\n    return x\n")
    here = direct.modules_behind("jaxdyn.theories.toy.topic")
    reference.this_process.cache_clear()  # another process
    copied("nn/layer.py", "def f(x):\n    return x\n")
    assert len({before, here, direct.modules_behind("jaxdyn.theories.toy.topic")}) == 3


def test_the_code_around_trials_is_that_of_this_process(monkeypatch):
    before = chunk.runner.__wrapped__()
    monkeypatch.setattr(reference, "BEGAN", 0)
    assert all(old != new and new.startswith(old) for old, new in zip(before, chunk.runner.__wrapped__(), strict=True))


def test_modules_of_anybodys_own_end_it(monkeypatch):
    assert not direct.in_use(), "nobody allowed it"
    monkeypatch.setattr(direct, "_allowed", True)
    assert not direct.in_use(), "the tests are loaded"


ASKED = """
import sys
from jaxdyn.engine.programs import direct
import jaxdyn.engine.runs.sweep
direct.allow()
print(direct.in_use())
sys.path.insert(0, sys.argv[1])
import foreign
print(direct.in_use())
"""


def test_a_process_that_loads_a_file_traces_everything(tmp_path):
    (tmp_path / "foreign.py").write_text("", encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(Path(jd.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", ASKED, str(tmp_path)], env=env, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.split() == ["True", "False"]
