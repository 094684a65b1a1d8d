"""Compiling ahead of time: what is kept, what is begun anew, and, where its compiler is installed, an H100 itself."""

import datetime
import importlib.util
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import jax
import pytest

from jaxdyn.engine.base.reference import Ref
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.programs import impossible
from jaxdyn.engine.programs.chunk import Chunk, Program
from jaxdyn.errors import UsageError
from jaxdyn.maintain import ahead

DRAWN = 20  # programs a day
CHILD = """
import json, os, sys
os.environ["EQX_ON_ERROR"] = "nan"
from jaxdyn.maintain import ahead
for chunk in ahead.lists("cuda", sys.argv[1:]):
    print(json.dumps([chunk.program.trial.title, ahead.compile_list("cuda", chunk.program, chunk.shape[1])]), flush=True)
"""


def chunk(name, fingerprint="text"):
    return Chunk(Program(Ref("m", name), Ref("m", "S"), (), fingerprint=fingerprint), ((),), (0,))


class Pipe:
    """The other process: answers after each program, or ends."""

    def __init__(self, answers):
        self.answers, self.sent = answers, []

    def send(self, what):
        self.sent.append(what[0].trial.qualname)

    def poll(self, seconds):
        return self.answers[self.sent[-1]] is not None

    def recv(self):
        if self.answers[self.sent[-1]] == "abort":
            raise EOFError
        return self.answers[self.sent[-1]]


class Process:
    """Of the other side."""

    exitcode = -6

    def join(self): ...

    def kill(self): ...


@pytest.fixture
def workers(monkeypatch):
    """Pretended processes, one a start: a compiles, b aborts, c takes too long, d is refused, e has no compiler, f is late."""
    answers, started = {"a": {"compile_seconds": 1.0}, "b": "abort", "c": None, "d": {"failed": "complex<f64>: c128"}}, []
    answers |= {"e": UsageError("the compiler for tpu is not there"), "f": {"compile_seconds": ahead.LIMIT + 1}}

    def start(platform):
        started.append(Pipe(answers))
        return Process(), started[-1]

    monkeypatch.setattr(ahead, "start", start)
    return started


def test_a_process_that_aborts_or_does_not_end_is_replaced(workers):
    found = dict(ahead.compiled("tpu", [chunk(n) for n in "abcda"], time.monotonic() + 100))
    assert {c.program.trial.qualname: r for c, r in found.items()} == {
        "a": {"compile_seconds": 1.0},
        "b": {"failed": "the compiler ended its process (-6)"},
        "c": {"failed": f"{ahead.SLOW} {ahead.LIMIT:g} s"},
        "d": {"failed": "complex<f64>: c128"},
    }
    assert [pipe.sent for pipe in workers] == [["a", "b"], ["c"], ["d", "a"]]


def test_where_the_memory_does_not_suffice_half_as_many_runs_are_compiled(monkeypatch):
    asked = []

    def compile_group(platform, program, runs, group):
        asked.append((runs, group))
        if group > fit:
            raise jax.errors.JaxRuntimeError(error)
        return {"bytes": group}

    monkeypatch.setattr(ahead, "compile_group", compile_group)
    error, fit = "RESOURCE_EXHAUSTED: 22.52G exceeds 15.75G", 12
    assert ahead.compile_list("tpu", None, 12) == {"bytes": 12} and asked == [(12, 12)]
    fit = 3
    assert ahead.compile_list("tpu", None, 12) == {"bytes": 3, "at_once": 3} and asked[1:] == [(12, 12), (12, 6), (12, 3)]
    fit = 0
    with pytest.raises(jax.errors.JaxRuntimeError):
        ahead.compile_list("tpu", None, 12)
    error, asked[:] = "INTERNAL: another", []
    with pytest.raises(jax.errors.JaxRuntimeError):
        ahead.compile_list("tpu", None, 12)
    assert asked == [(12, 12)]


def test_without_a_compiler_nothing_is_a_result(workers):
    with pytest.raises(UsageError, match="is not there"):
        list(ahead.compiled("tpu", [chunk("e"), chunk("a")], time.monotonic() + 100))
    assert [pipe.sent for pipe in workers] == [["e"]]


def test_a_process_without_its_compiler_says_so_and_ends(monkeypatch):
    def missing(**asked):
        raise RuntimeError("a lock of another process")

    class Asked:
        said = []

        def send(self, what):
            self.said.append(what)

    monkeypatch.setattr(ahead.topologies, "get_topology_desc", missing)
    ahead.topology.cache_clear()
    ahead.work("tpu", Asked())
    ahead.topology.cache_clear()
    (error,) = Asked.said
    assert isinstance(error, UsageError) and "a lock of another process" in str(error)


def test_the_limit_is_the_same_for_the_first_of_a_process(workers):
    ((_, found),) = ahead.compiled("tpu", [chunk("f")], time.monotonic() + 100)
    assert found == {"failed": f"{ahead.SLOW} {ahead.LIMIT:g} s"}


def test_nothing_is_begun_when_the_time_is_up(workers):
    assert list(ahead.compiled("tpu", [chunk("a")], time.monotonic() - 1)) == [] and not workers


def test_results_are_kept_and_obstacles_written(workers, tmp_path, monkeypatch):
    monkeypatch.setattr(ahead, "topology", lambda platform: None)
    monkeypatch.setattr(ahead, "version", lambda package: "1.2")
    monkeypatch.setattr(ahead, "lists", lambda platform: [chunk(n) for n in "abcd"])
    monkeypatch.setattr(ahead.direct, "facts_of", lambda programs: {program: {"bytes": 7} for program in programs})
    monkeypatch.setattr(impossible, "SHIPPED", tmp_path / "impossible.json")
    file = tmp_path / "ahead.json"
    assert ahead.write("tpu", 100, file) == (4, 4)
    assert ahead.read(file)["about"]["tpu"].startswith("JAX 1.2, libtpu 1.2, 2")
    (a, *_) = ahead.read(file)["tpu"].values()
    made_from = a.pop("made_from")
    assert a == {"compile_seconds": 1.0, "runs": 1, "estimate": 7, "stamp": "text 1"}
    assert made_from["programs"] == ["text"] and made_from["platform"] == "tpu" and made_from["runs"] == "1"
    assert json.loads(impossible.SHIPPED.read_text(encoding="utf-8")) == {
        "tpu": {"m:b ()": "makes the compiler crash", "m:d ()": "needs complex128, which this platform lacks"}
    }
    del workers[:]
    older = ahead.read(file)
    del older["tpu"]["m:a ()"]["made_from"]
    file.write_text(json.dumps(older), encoding="utf-8")
    assert ahead.write("tpu", 100, file) == (4, 4) and not workers, "nothing is compiled twice"
    assert ahead.read(file)["tpu"]["m:a ()"]["made_from"] == made_from, "an older result of the same program is as good"
    monkeypatch.setattr(ahead, "lists", lambda platform: [chunk("a", "another text"), *(chunk(n) for n in "bcd")])
    assert ahead.write("tpu", -1, file) == (3, 4) and len(ahead.read(file)["tpu"]) == 4, "what has changed stays until it is done"
    assert ahead.write("tpu", 100, file) == (4, 4) and [pipe.sent for pipe in workers] == [["a"]]


def test_what_has_changed_since_programs_were_compiled(tmp_path, monkeypatch):
    claim = all_claims(theories={"cal"})["cal.quadratic_rate"]
    monkeypatch.setattr(ahead.registry, "select", lambda patterns: [claim])
    file = tmp_path / "ahead.json"
    (name,) = ahead.changes("tpu", file)
    assert str(ahead.changes("tpu", file)[name]) == "never compiled"
    file.write_text(json.dumps({"tpu": {name: {"stamp": "older"}}}), encoding="utf-8")
    assert str(ahead.changes("tpu", file)[name]) == "recorded before fingerprints were kept"
    (one,) = ahead.lists("tpu", [claim.id])
    made_from = ahead.made_from("tpu", one)
    for parts, words in (
        ({}, ""),
        ({"programs": [], "keys": []}, "the program changed"),
        ({"runs": "another"}, "the settings or seeds changed"),
        ({"jax": "0.1"}, "made with JAX 0.1"),
    ):
        file.write_text(json.dumps({"tpu": {name: {"stamp": "", "made_from": made_from | parts}}}), encoding="utf-8")
        assert str(ahead.changes("tpu", file)[name]) == words


def test_without_the_compiler_one_sentence_says_what_to_install(monkeypatch):
    def missing(**asked):
        raise RuntimeError("no such platform\nand more")

    monkeypatch.setattr(ahead.topologies, "get_topology_desc", missing)
    ahead.topology.cache_clear()
    with pytest.raises(UsageError, match=r"no such platform\): pip install 'jaxdyn\[cuda13\]'$"):
        ahead.topology("cuda")
    ahead.topology.cache_clear()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax_plugins") is None, reason="no compiler for GPUs here (jaxdyn[cuda13])")
def test_programs_drawn_by_the_day_compile_for_an_h100():
    """Those of claims that need nothing which may not be there."""
    day = datetime.datetime.now(datetime.UTC).date().toordinal()
    needy = ("imports", "resource")
    ids = sorted(claim.id for claim in all_claims().values() if not any(hasattr(claim.trial, name) for name in needy))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *random.Random(day).sample(ids, DRAWN)],
        env=os.environ | {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "-1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        encoding="utf-8",
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    found = list(map(json.loads, done.stdout.splitlines()))
    assert len(found) >= DRAWN / 2 and all(facts["bytes"] > 0 for _, facts in found)
