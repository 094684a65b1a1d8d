"""Benchmarks: an accelerator against a CPU, in parts and as a whole, and small factorisations."""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxdyn.engine.catalogue import registry

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
FAKE = """
import json, os, subprocess, sys, time
for line in sys.stdin:
    piece = json.loads(line)["piece"]
    if piece == "hang":
        child = subprocess.Popen(["sleep", "100"])
        print(json.dumps({"part": "first", "child": child.pid}), flush=True)
        time.sleep(100)
    if piece == "die":
        print("out of memory\\n", file=sys.stderr, flush=True)
        os._exit(3)
    print(json.dumps({"part": "first", "run": 1.0}))
    print(json.dumps({"part": "first", "process": os.getpid()}))
    print(json.dumps({"failed": "ValueError: no"} if piece == "raise" else {"done": True}), flush=True)
"""


@pytest.fixture(scope="module")
def load():
    """Import a benchmark as if it were called."""
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(BENCHMARKS))
    here = set(sys.modules)
    yield importlib.import_module
    for name in {path.stem for path in BENCHMARKS.glob("*.py")} & (set(sys.modules) - here):
        del sys.modules[name]
    patch.undo()


@pytest.fixture
def side(load, tmp_path, monkeypatch):
    """A side whose process is a stand-in."""
    accelerator = load("accelerator")
    (tmp_path / "fake.py").write_text(FAKE, encoding="utf-8")
    monkeypatch.setattr(accelerator.Side, "script", tmp_path / "fake.py")
    side = accelerator.Side("cpu", tmp_path)
    yield side
    side.close()


def alive(pid):
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split()[2] != "Z"
    except OSError:
        return False


def test_a_piece_that_hangs_is_ended_with_what_it_started_and_its_findings_are_kept(side):
    assert side.ask("fine", 20.0, True, None)[1] == ""  # the process has started
    found, failure = side.ask("hang", 1.0, True, None)
    assert failure == "stopped after 1 s"
    child = found["first"]["child"]
    end = time.monotonic() + 5
    while alive(child) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(child)
    assert side.ask("fine", 20.0, True, None)[1] == ""  # in a new process


def test_a_process_that_ends_is_replaced_and_one_that_is_well_stays(side):
    assert side.ask("die", 20.0, True, None) == ({}, "its process ended with 3: out of memory")
    first, failure = side.ask("fine", 20.0, True, None)
    again, _ = side.ask("fine", 20.0, True, None)
    assert failure == "" and first["first"]["run"] == 1.0
    assert again["first"]["process"] == first["first"]["process"]
    after, failure = side.ask("raise", 20.0, True, None)
    assert failure == "ValueError: no" and after["first"]["run"] == 1.0
    assert side.ask("fine", 20.0, True, None)[0]["first"]["process"] != first["first"]["process"]
    alone, _ = side.ask("verdicts", 20.0, True, None)
    assert side.process is None and alone["first"]["run"] == 1.0


def test_the_cpu_is_told_its_platform_and_neither_side_uses_what_was_compiled_before(load, tmp_path):
    accelerator = load("accelerator")
    sides = {name: accelerator.Side(name, tmp_path).environment for name in accelerator.SIDES}
    assert sides["cpu"]["JAX_PLATFORMS"] == "cpu"
    assert sides["accelerator"].get("JAX_PLATFORMS") == os.environ.get("JAX_PLATFORMS")
    caches = {environment["JAX_COMPILATION_CACHE_DIR"] for environment in sides.values()}
    assert len(caches) == 2 and all(cache.startswith(str(tmp_path)) for cache in caches)


class Clock:
    """A side that takes a share of what it is given, and time that passes only by that."""

    def __init__(self, share):
        self.now, self.share, self.limits = 0.0, share, []

    def ask(self, piece, limit, quick, model):
        self.limits.append(limit)
        self.now += self.share * limit
        return {piece: {"first": 1.0, "run": 1.0, "parts": 1, "timed": 1}}, ""

    def monotonic(self):
        return self.now


@pytest.mark.parametrize(("share", "used"), [(1.0, 480.0), (0.1, 480.0 * 0.5)])
def test_pieces_share_the_time_and_leave_what_they_do_not_need(load, monkeypatch, share, used):
    accelerator, clock = load("accelerator"), Clock(share)
    monkeypatch.setattr(accelerator, "time", clock)
    options = argparse.Namespace(minutes=8.0, pieces=list(accelerator.SHARES), quick=True, model=None, out=None)
    found = accelerator.work(options, dict.fromkeys(accelerator.SIDES, clock), {}, 0.0)
    assert list(found) == options.pieces
    assert clock.now <= used + 1e-6
    weights = [w for pair in accelerator.SHARES.values() for w in pair]
    assert clock.limits[0] == pytest.approx(480 * weights[0] / sum(weights))
    later = 480 * weights[-1] / sum(weights)
    assert clock.limits[-1] == pytest.approx(later) if share == 1 else clock.limits[-1] > 3 * later


def test_without_time_left_nothing_is_begun(load):
    accelerator, clock = load("accelerator"), Clock(1.0)
    options = argparse.Namespace(minutes=0.0, pieces=["li2"], quick=True, model=None, out=None)
    found = accelerator.work(options, dict.fromkeys(accelerator.SIDES, clock), {}, time.monotonic())
    assert clock.limits == []
    (row,) = accelerator.tables(found)[1]
    assert row["work"] == "li2"
    assert row["note"] == "accelerator failed: no time was left; cpu failed: no time was left"


def test_a_row_says_how_much_faster_what_was_extrapolated_and_where_the_sides_differ(load):
    row = load("accelerator").row
    ours = {"first": 9.0, "run": 2.0, "compile": 7.0, "parts": 10, "timed": 9, "flops": 4e12, "values": {"a": (1.0, 2.0)}}
    cpu = {"first": 9.0, "run": 30.0, "compile": 6.0, "parts": 10, "timed": 3, "values": {"a": (1.5, 2.0), "b": (9.0, 1.0)}}
    ours["verdicts"], cpu["verdicts"] = {"x": "upheld", "y": "upheld"}, {"x": "upheld", "y": "refuted", "z": "upheld"}
    found = row("work", (ours, cpu), ("", ""), 1e13)
    assert found["faster"] == 15.0
    assert found["of peak"] == pytest.approx(0.2)
    assert found["difference"] == 0.25
    assert "cpu: 3 of 10 parts timed, multiplied" in found["note"]
    assert "accelerator" not in found["note"]
    assert "y: upheld against refuted" in found["note"]
    alone = row("work", ({"first": 9.0, "parts": 10}, {}), ("stopped after 9 s", ""), None)
    assert (alone["faster"], alone["of peak"], alone["difference"]) == ("", "", "")
    assert alone["note"] == "accelerator failed: stopped after 9 s; accelerator: only its first part, 9.0 s with compilation"


def test_the_failure_of_a_piece_is_that_of_its_last_part(load):
    done, begun = {"first": 1.0, "run": 1.0, "parts": 1, "timed": 1}, {"first": 5.0, "parts": 1}
    rates = {"product, float32, full": {"rate": 2.0, "unit": "TFlop/s", "size": 64}}
    found = {
        "calibration": ({"accelerator": rates, "cpu": {}}, {"accelerator": "", "cpu": "stopped after 3 s"}),
        "language": ({"accelerator": {"a": done, "b": begun}, "cpu": {"a": done}}, {"accelerator": "no memory", "cpu": ""}),
    }
    (rate,), (calibration, first, second) = load("accelerator").tables(found)
    assert (rate["accelerator"], rate["CPU"], rate["ratio"]) == (2.0, "", "")
    assert calibration["note"] == "cpu failed: stopped after 3 s"
    assert first["faster"] == 1.0 and first["note"] == ""
    assert second["work"] == "b" and second["note"].startswith("accelerator failed: no memory")


def test_options_name_pieces_and_a_trial_writes_no_result(load, capsys):
    accelerator = load("accelerator")
    options = accelerator.parsed(["--quick", "--pieces", "li2,map"])
    assert (options.pieces, options.out, options.minutes) == (["li2", "map"], None, 8.0)
    assert accelerator.parsed([]).out == BENCHMARKS / "results" / "accelerator.json"
    with pytest.raises(SystemExit):
        accelerator.parsed(["--pieces", "li2,nothing"])
    for minutes in ("0", "-1", "nan", "inf"):
        with pytest.raises(SystemExit):
            accelerator.parsed(["--minutes", minutes])
    assert "--pieces nothing is not allowed: pieces are calibration, li2" in capsys.readouterr().err
    assert set(accelerator.SHARES) == set(load("pieces").PIECES) - {"devices"}


def test_a_part_is_timed_at_least_once_and_not_begun_when_time_is_up(load):
    pieces, lines, calls = load("pieces"), [], []
    late = pieces.Task(True, None, time.perf_counter() - 1, lines.append)
    pieces.measure(late, "a", lambda: calls.append(1) or len(calls), 20, lambda n: {"n": pieces.size_of(n)}, flops=5)
    told = {k: v for line in lines for k, v in line.items()}
    assert len(calls) == 2 and told["timed"] == 1 and told["parts"] == 20 and told["flops"] == 5
    assert told["values"] == {"n": (1.0, 1.0)}  # of the first part
    pieces.measure(late, "whole", lambda: calls.append(1))
    assert len(calls) == 3 and lines[-1]["notes"] == ["its run includes compilation"] and lines[-1]["timed"] == 0
    early = pieces.Task(True, None, time.perf_counter() + 100, lines.append)
    pieces.measure(early, "b", lambda: time.sleep(0.01), 4)
    assert lines[-1]["timed"] == 3 and 0.04 <= lines[-1]["run"] < 0.4


class Lowered:
    """A program that compiles only without Triton."""

    def __init__(self):
        self.options = []

    def lower(self, *args):
        return self

    def compile(self, compiler_options=None):
        self.options.append(compiler_options)
        if compiler_options is None:
            raise jax.errors.JaxRuntimeError("INTERNAL: Couldn't find output tile sizes\nmore")
        return lambda x: x + 1


def test_what_xla_cannot_compile_with_triton_is_compiled_without_and_that_is_noted(load, monkeypatch):
    pieces, lowered, notes = load("pieces"), Lowered(), []
    with pytest.raises(jax.errors.JaxRuntimeError):
        pieces.compiled_at_first(lowered, notes)(1)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    call = pieces.compiled_at_first(lowered, notes)
    assert (call(1), call(2)) == (2, 3)
    assert lowered.options == [None, None, {"xla_gpu_enable_triton_gemm": False}]
    assert notes == ["compiled without Triton; with it: JaxRuntimeError: INTERNAL: Couldn't find output tile sizes"]
    found = load("accelerator").row("work", ({"notes": notes}, {}), ("", ""), None)
    assert found["note"].startswith("accelerator: compiled without Triton")


def test_means_are_those_of_finite_entries(load):
    mean, scale = load("pieces").size_of(np.array([3.0, np.nan, np.inf, -1.0], np.float32))
    assert mean == 1.0 and scale == pytest.approx(5**0.5)
    assert load("pieces").size_of(np.array([np.nan])) == (0.0, 0.0)


def test_checks_are_compared_on_the_scale_of_their_bounds(load):
    checks = [
        {"name": "error", "value": 1e-15, "bound": [None, 1e-9]},
        {"name": "slope", "value": -2.0, "bound": [-1.5, 0.5]},
        {"name": "none", "value": None, "bound": [0.0, None]},
    ]
    found = load("pieces").check_values([{"id": "a.b", "checks": checks}])
    assert found == {"a.b: error": (1e-15, 1e-9), "a.b: slope": (-2.0, 2.0)}
    other = {"values": {"a.b: error": (3e-15, 1e-9), "a.b: slope": (-2.0, 2.0)}}
    assert load("accelerator").difference({"values": found}, other) == (pytest.approx(2e-6), "a.b: error")


def test_a_piece_that_fails_says_why_and_the_next_is_done(load, monkeypatch):
    pieces, lines = load("pieces"), []

    def broken(task):
        task.say("a", run=1.0)
        raise MemoryError("14 GiB\nmore")

    monkeypatch.setattr(pieces, "use_all_cores", lambda: None)
    monkeypatch.setattr(pieces, "PIECES", {"broken": broken, "well": lambda task: task.say("b", until=task.until)})
    orders = [json.dumps({"piece": name, "seconds": 50, "quick": True, "model": None}) for name in ("broken", "well")]
    pieces.serve(orders, lines.append)
    assert lines[:2] == [{"part": "a", "run": 1.0}, {"failed": "MemoryError: 14 GiB"}]
    assert lines[2]["until"] == pytest.approx(time.perf_counter() + 50, abs=5)
    assert lines[3] == {"done": True}


@pytest.mark.slow
def test_the_claims_whose_verdicts_are_compared_exist_and_are_of_several_kinds(load):
    pieces, known = load("pieces"), registry.all_claims()
    assert len({known[name].evidence for name in pieces.CLAIMS}) >= 3
    assert {*pieces.CLAIMS, *pieces.QUICK_CLAIMS} <= set(known)


def test_devices_are_told_with_versions(load):
    lines, pieces = [], load("pieces")
    pieces.devices(pieces.Task(True, None, 0.0, lines.append))
    (facts,) = lines
    assert facts["platform"] == jax.default_backend()
    assert facts["packages"]["jax"] == jax.__version__
    assert 1 <= facts["cores"] <= os.cpu_count()


def test_results_of_other_hardware_are_kept(load, tmp_path):
    common, path = load("common"), tmp_path / "made" / "result.json"
    for accelerator, number in (("one", 1), ("two", 2), ("one", 3)):
        machine = {"cpu": "x", "accelerator": accelerator}
        common.write(path, {"machine": machine, "number": number, "said": "in /home/someone/a.py"})
    result = json.loads(path.read_text(encoding="utf-8"))
    assert result["number"] == 3 and result["said"] == "in …/a.py"
    assert [one["number"] for one in result["elsewhere"]] == [2]


def test_all_benchmarks_are_run_but_those_that_need_what_is_not_here(load):
    run_all = load("run_all")
    on_cpu, on_gpu = ([path.name for path in run_all.scripts(platform)] for platform in ("cpu", "gpu"))
    assert set(on_gpu) - set(on_cpu) == {"accelerator.py"}
    assert {"factorisations.py", "sweep_overhead.py"} <= set(on_cpu)
    assert not {"common.py", "pieces.py", "kills.py", "sweep_trials.py"} & set(on_gpu)


def test_peaks_are_rates_of_the_precision_that_is_asked_for(load):
    common = load("common")
    rates = [common.matmul_peak(64, 2, dtype) for dtype in ("float32", "float64", "bfloat16")]
    assert all(1e6 < rate < 1e15 for rate in rates)
    assert common.best_seconds(lambda: time.sleep(0.01), 2, 3) >= 0.01


@pytest.mark.parametrize("kind", ["eigh", "singular values", "inv", "solve"])
def test_factorisations_agree_and_one_that_does_not_is_refused(load, kind, x64):
    bench = load("factorisations")
    runs = bench.contestants(kind, *bench.matrices(5, 8, "float64"))
    assert bench.difference(kind, runs, "float64") < 1e-13
    wrong = bench.contestants(kind, 1.001 * bench.matrices(5, 8, "float64")[0], bench.matrices(5, 8, "float64")[1])
    with pytest.raises(SystemExit, match=f"{kind}, float64: results differ by"):
        bench.difference(kind, runs | {"jaxdyn.linalg": wrong["jaxdyn.linalg"]}, "float64")


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_the_programs_of_the_pieces_lower_for_accelerators(load, platform):
    lm, li2 = load("lm_torch"), load("li2_torch")
    run, start = li2.our_trainer(23, 256, 0.8, 10)
    assert run.trace(*start(0)).lower(lowering_platforms=(platform,)).as_text()
    run, start = lm.our_steps(1, lm.DROPOUT, lm.words(4, 100), 100)
    assert run.trace(*start(0), 2).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.slow
def test_without_an_accelerator_it_says_so(tmp_path):
    command = [sys.executable, str(BENCHMARKS / "accelerator.py"), "--out", str(tmp_path / "result.json")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=os.environ | {"JAX_PLATFORMS": "cpu"})
    assert done.returncode == 2
    assert "JAX finds no accelerator, only cpu" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "result.json").exists()


@pytest.mark.slow
def test_a_trial_of_the_whole(tmp_path):
    """All pieces in small sizes, in an environment without compiled programs; both sides are what is here."""
    result = tmp_path / "result.json"
    command = [sys.executable, str(BENCHMARKS / "accelerator.py"), "--quick", "--out", str(result)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=tmp_path, env=os.environ | {"JAX_PLATFORMS": "cpu"})
    assert done.returncode == 0, done.stderr
    assert "NO ACCELERATOR IS HERE: both sides are the CPU" in " ".join(done.stdout.split())
    found = json.loads(result.read_text(encoding="utf-8"))
    assert found["machine"]["accelerator"].endswith("cpu (cpu)") and found["quick"] is True
    assert len(found["rates"]) == 8 and all(isinstance(rate["ratio"], float) for rate in found["rates"])
    rows = found["rows"]
    words = ("Li2", "language model", "Figure 6", "laboratory", "verify", "random weights", "random weights", "map")
    assert [row["work"].startswith(word) for row, word in zip(rows, words, strict=True)] == [True] * 8
    assert [row["work"] for row in rows if "failed" in row["note"]] == []
    assert [row["work"] for row in rows if not 0 < row["faster"] < 100 or not row["difference"] < 1e-9] == []
    assert "1 verdicts equal" in rows[4]["note"]
    assert 0 < rows[4]["compile s"] < rows[4]["run s"]
    assert set(found["pieces"]) == {"calibration", "li2", "language", "fig6", "laboratory", "verdicts", "probe", "map"}


def test_contestants_take_turns_on_the_clock_that_is_asked_for(load):
    common, turns = load("common"), []
    ticks = iter(range(100))
    times = common.interleaved({name: lambda name=name: turns.append(name) for name in "ab"}, 2, clock=lambda: float(next(ticks)))
    assert turns == list("ababab")  # with the warm-up
    assert times["a"] == {"min": 1.0, "median": 1.0, "samples": [1.0, 1.0]}
    start = common.cpu_seconds()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    assert 0.25 < common.cpu_seconds() - start < 5


def test_the_peak_of_a_process_is_its_own(tmp_path):
    """Not that of the process that started it, with which Linux begins ``ru_maxrss``."""
    code = "import sys\nsys.path.insert(0, sys.argv[1])\nfrom common import peak_memory\nprint(peak_memory())\n"
    code += "block = bytearray(b'x') * 2**28\nprint(peak_memory())"
    block = bytearray(b"x") * 2**28  # 256 MiB here, too
    done = subprocess.run([sys.executable, "-c", code, str(BENCHMARKS)], capture_output=True, encoding="utf-8", check=True)
    before, after = map(float, done.stdout.split())
    assert len(block) == 2**28 and before < 0.2 and 0.2 < after - before < 0.3


@pytest.mark.parametrize("part", ["million", "few", "network"])
@pytest.mark.thinned
def test_the_overhead_of_a_sweep_is_measured(load, part, capsys):
    overhead = load("sweep_overhead")
    rows, facts = overhead.PARTS[part](True)
    assert {row["part"] for row in rows} == {part} and len({tuple(row) for row in rows}) == 1
    assert all(0 < row["min"] <= row["median"] < 60 for row in rows)
    assert all((row["bar"] == "") == (row["met"] == "") and row["met"] in ("", "met", "NOT MET") for row in rows)
    assert sum(row["bar"] != "" for row in rows) == {"million": 3, "few": 1, "network": 1}[part]
    json.dumps([rows, facts])


def test_a_bar_is_met_by_the_median(load):
    row = load("sweep_overhead").row
    assert row("few", "", "s", [1.0, 2.0, 9.0], 2.0, plain=1.0)["met"] == "met"
    assert row("few", "", "s", [1.0, 2.1, 9.0], 2.0)["met"] == "NOT MET"
    assert row("few", "", "s", [1.0, 2.0, 9.0], 2.0, plain=1.0)["plain / median"] == 0.5
    assert row("few", "", "s", [float("nan")], 2.0)["met"] == "NOT MET"


def test_contestants_that_disagree_are_refused(load):
    overhead = load("sweep_overhead")
    hand, ds = overhead.by_hand(2)(), overhead.by_engine(2)
    overhead.agree(hand, ds)
    overhead.agree(overhead.as_list(2)(), ds)
    with pytest.raises(AssertionError, match="the contestants disagree"):
        overhead.agree({name: values * (1 + 1e-14) for name, values in hand.items()}, ds)
    with pytest.raises(AssertionError, match="0 of 200 runs were restored"):
        overhead.by_engine(2, restored=True)


def test_what_is_packed_plainly_is_read_again(load, tmp_path, monkeypatch):
    overhead = load("sweep_overhead")
    monkeypatch.setattr(overhead, "STORE_BLOCK", 1 << 10)  # several blocks, the last one short
    ds = overhead.by_engine(3)
    overhead.packed(ds, tmp_path / "plain")
    data = b"".join(block.tobytes() for block in overhead.unpacked(tmp_path / "plain"))
    assert data == b"".join(variable.values.tobytes() for variable in ds.data_vars.values())


def test_parts_that_are_not_run_are_kept_if_they_are_of_this_machine(load):
    overhead = load("sweep_overhead")
    old = {
        "machine": overhead.machine(),
        "details": {"few": 1, "large": 2},
        "rows": [{"part": p, "n": 1} for p in ("few", "large")],
    }
    rows, facts = overhead.together(old, [{"part": "few", "n": 2}], {"few": 3})
    assert [(row["part"], row["n"]) for row in rows] == [("few", 2), ("large", 1)] and facts == {"few": 3, "large": 2}
    other = old | {"machine": {"cpu": "another"}}
    assert overhead.together(other, [{"part": "few", "n": 2}], {"few": 3})[1] == {"few": 3}
    assert overhead.together({}, [{"part": "few", "n": 2}], {"few": 3})[1] == {"few": 3}


def test_which_parts_of_the_overhead_are_measured(load, capsys):
    overhead = load("sweep_overhead")
    assert overhead.parsed([]).only == ["million", "memory", "few", "network", "verify"]
    assert overhead.parsed(["--large"]).only == ["large"] and overhead.parsed(["--cluster"]).only == ["cluster"]
    assert overhead.parsed(["--only", "few", "memory"]).only == ["few", "memory"]
    for words in (["--only", "nothing"], ["--large", "--cluster"]):
        with pytest.raises(SystemExit):
            overhead.parsed(words)


def test_a_process_that_takes_too_much_memory_is_ended(load, tmp_path):
    overhead = load("sweep_overhead")
    assert overhead.fresh("alone", "in memory", 1, tmp_path, limit=0.01) == {"peak": 0.01}
    with pytest.raises(SystemExit, match="alone nothing 0 .*: its process ended with 1"):
        overhead.fresh("alone", "nothing", 0, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["memory", "large", "verify", "cluster"])
def test_the_overhead_in_processes_of_their_own(part, tmp_path):
    if part == "cluster":
        pytest.importorskip("distributed")
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "sweep_overhead.py"), "--quick", "--only", part],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        env=os.environ | {"COLUMNS": "200"},
    )
    assert done.returncode == 0, done.stderr
    assert "What the engine costs beyond the runs" in done.stdout
    assert re.search(rf"│ +{part} │", done.stdout)
