"""Compiling ahead in a thread: what is begun, what is waited for, what is raised where."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.engine.base.devices import Devices, elsewhere
from jaxdyn.engine.base.reference import Ref
from jaxdyn.engine.programs import program
from jaxdyn.engine.programs.chunk import Chunk, Program
from jaxdyn.engine.runs import preparing as module
from jaxdyn.engine.runs import sweep
from jaxdyn.engine.runs.preparing import Preparing
from jaxdyn.engine.verification.verify import verify_many

GPU = Devices("gpu", 1)


def chunk(name):
    return Chunk(Program(Ref("m", name), Ref("m", "S"), ()), ((),), (0,))


A, B, C = map(chunk, "abc")


def test_the_next_program_is_begun_and_waited_for():
    gate, done = threading.Event(), []
    ahead = Preparing(lambda one: (gate.wait(10), done.append(one)))
    ahead.begin(A, [A, B, C])
    assert module.at_work()
    ahead.begin(A, [C])  # the thread is at work
    gate.set()
    assert ahead.taken(A) == 0.0 and ahead.taken(B) > 0.0 and done == [B] and not module.at_work()
    assert ahead.taken(B) == 0.0, "counted once"
    ahead.begin(B, [B])
    assert not module.at_work() and done == [B], "nothing else to compile"


def test_ctrl_c_while_the_thread_is_waited_for_leaves_it_at_work():
    """Joined, it would be taken for ended, and the process would end in the middle of its compilation."""
    gate, main = threading.Event(), threading.main_thread()
    if threading.current_thread() is not main:
        pytest.skip("signals go to the main thread")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        ahead = Preparing(lambda one: gate.wait(10))
        ahead.begin(A, [B])
        threading.Timer(0.3, signal.pthread_kill, (main.ident, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            ahead.taken(B)
    finally:
        signal.signal(signal.SIGINT, before)
    assert module.at_work()
    gate.set()
    assert ahead.taken(B) > 0.0 and not module.at_work()


def test_a_thread_that_cannot_be_started_is_not_waited_for(monkeypatch):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    ahead = Preparing(print)
    with pytest.raises(RuntimeError):
        ahead.begin(A, [B])
    assert not module.at_work() and ahead.taken(B) == 0.0


def test_what_compiling_ahead_raises_is_left_to_the_run():
    def broken(one):
        raise ValueError("a trial is wrong")

    ahead = Preparing(broken)
    ahead.begin(A, [B])
    assert ahead.taken(B) > 0.0


@pytest.mark.parametrize("cores", [1, 2])
def test_the_next_program_is_compiled_while_one_runs(toys, monkeypatch, cores):
    """Every program is compiled once, all but the first by the thread, if there is a core for it; each has its own cost."""
    threads, compile_block = [], program.compile_block

    def noted(*args):
        threads.append(threading.current_thread().name)
        return compile_block(*args)

    monkeypatch.setattr(program, "compile_block", noted)
    monkeypatch.setattr(sweep, "CORES", cores)
    program.compiled_rectangle.cache_clear()
    grid, costs = jd.grid(toys.Toy, lr=[0.01, 0.02], size=[3, 5, 7]), []

    class Told:
        def start(self, *counts): ...

        def advance(self, runs, facts):
            costs.append(facts["compile_seconds"])

    found = jd.sweep(toys.decay, grid, 3, progress=Told())
    assert sorted(threads) == sorted([module.RUNS] + 2 * [module.NAME if cores > 1 else module.RUNS])
    assert len(costs) == 3 and min(costs) > 0
    with elsewhere(GPU):
        there = jd.sweep(toys.decay, grid, 3)
    for name in found.data_vars:
        np.testing.assert_allclose(found[name], there[name], rtol=1e-14)


def test_claims_end_as_on_cpu(toys):
    with elsewhere(GPU):
        there = {v.claim.id: v.verdict for v in verify_many(toys.CLAIMS)}
    assert there == {v.claim.id: v.verdict for v in verify_many(toys.CLAIMS)}


def test_a_trial_that_cannot_be_traced_is_an_error_of_its_own_claim(toys):
    with elsewhere(GPU), pytest.raises(ValueError, match="this trial is broken"):
        jd.sweep(toys.broken, jd.grid(toys.Toy), 2)


SCRIPT = """
import sys, time
import jaxdyn as jd
from jaxdyn.engine.programs import program
from jaxdyn.engine.runs import sweep
from jaxdyn.engine.base.devices import Devices, elsewhere
from jaxdyn.engine.base.reference import load_file

toys, built = load_file(sys.argv[1]), program.compile_block

def slowly(one, *args):
    if dict(one.static)["size"] == 5:
        time.sleep(2)
        compiled = built(one, *args)
        print("compiled")
        return compiled
    raise ValueError("a trial is wrong")

program.compile_block = slowly
with elsewhere(Devices("gpu")):
    jd.sweep(toys.decay, jd.grid(toys.Toy, size=[3, 5]))
"""


def test_a_script_that_fails_ends_after_the_compiler():
    """Otherwise JAX is taken away from under the thread, which aborts the process."""
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parents[1] / "toys.py")]
    done = subprocess.run(command, env=os.environ | {"JAX_PLATFORMS": "cpu"}, capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 1 and "a trial is wrong" in done.stderr and done.stdout == "compiled\n", done.stderr


SLOW = """
import pathlib, sys, threading, time
import jaxdyn.cli.main as main
from jaxdyn.engine.runs import preparing, sweep

sweep.CORES, flag = 2, pathlib.Path(sys.argv[2])

def slowly(chunk):
    flag.touch()
    time.sleep(60)

sweep.prepare = slowly
run_chunk = sweep.run_chunk
sweep.run_chunk = lambda chunk: (time.sleep(3), run_chunk(chunk))[1]
sys.argv = ["jaxdyn", "verify", "cal.unbalanced", "cal.eos_mlp", "--workers", "1", "--out", sys.argv[1]]
main.run()
"""


@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_the_compiler(tmp_path):
    flag = tmp_path / "compiling"
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(tmp_path / "out"), str(flag)],
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        stderr=subprocess.PIPE,
        encoding="utf-8",
        cwd=Path(__file__).parents[3],
    )
    deadline = time.monotonic() + 60
    while not flag.exists() and time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    start = time.monotonic()
    _, said = child.communicate(timeout=50)
    assert flag.exists() and child.returncode == 130 and "interrupted" in said.lower(), said
    assert time.monotonic() - start < 20


ENDLESS = """
import jax, jax.numpy as jnp, jaxdyn as jd

@jd.setting
class Walk:
    a: jd.Swept = 1.0

def trial(s, key):
    n = jax.lax.while_loop(lambda i: i >= 0, lambda i: 1.0 - i, 0.0 * s.a)
    return jd.observables(predicted={"x": s.a}, measured={"x": s.a + n})

def short(s, key):
    return jd.observables(measured={"x": s.a})

if __name__ == "__main__":
    print("begins", flush=True)
    try:
        jd.sweep(trial, jd.grid(Walk, a=[1.0]), seeds=2)
    except KeyboardInterrupt as error:
        print(error, flush=True)
        print(jd.sweep(short, jd.grid(Walk), seeds=2).measured_x.values, flush=True)
        raise
"""


def test_ctrl_c_in_a_script_ends_the_wait_for_a_program_that_does_not_end(tmp_path):
    (tmp_path / "endless.py").write_text(ENDLESS, encoding="utf-8")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    environment = os.environ | {"JAXDYN_CACHE": str(tmp_path / "cache")}
    heeding = "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler); "  # a shell's & turns it off
    script = f"{heeding}runpy.run_path('endless.py', run_name='__main__')"
    process = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, env=environment, **pipes)
    assert process.stdout.readline() == "begins\n"
    time.sleep(4.0)  # the program is compiled, and runs
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert out == f"{module.ABANDONED}\n[1. 1.]\n" and err.rstrip().endswith(f"KeyboardInterrupt: {module.ABANDONED}"), (out, err)
    assert process.returncode == 130


FAILING = """
import os, signal, threading, time
from jaxdyn.engine.runs.preparing import interruptible

signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    interruptible(time.sleep, 600)
except KeyboardInterrupt:
    print("goes on", flush=True)
"""


@pytest.mark.parametrize(("end", "code"), [("raise ValueError('later')", 1), ("raise KeyboardInterrupt", 130), ("pass", 0)])
def test_a_script_that_abandoned_a_program_ends_as_it_would_without(end, code):
    done = subprocess.run([sys.executable, "-c", FAILING + end], capture_output=True, encoding="utf-8", timeout=120)
    assert (done.returncode, done.stdout) == (code, "goes on\n"), done.stderr


def test_what_runs_in_another_thread_returns_and_raises_here():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert module.interruptible(lambda: threading.current_thread() is threading.main_thread()) is False
    with pytest.raises(KeyError, match="here"):
        module.interruptible({}.__getitem__, "here")
    with np.errstate(all="raise"):
        assert module.interruptible(np.geterr)["over"] == "raise", "with the context of the caller"
    with jax.default_matmul_precision("highest"), jax.disable_jit():
        assert module.interruptible(threading.current_thread) is threading.main_thread(), "JAX's settings are those of a thread"


def test_a_function_is_waited_for_no_longer_than_some_seconds():
    ended = threading.Event()
    with pytest.raises(TimeoutError, match="not done after 0 seconds"):
        module.within(0.2, ended.wait, 60.0)
    ended.set()
    assert module.within(60.0, sum, [1, 2]) == 3
    with pytest.raises(KeyError, match="here"):
        module.within(60.0, {}.__getitem__, "here")


def test_ctrl_c_does_not_wait_for_a_function():
    """Five seconds in a function are not waited for; what it returns is dropped."""
    began, ended = time.monotonic(), threading.Event()
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt, match="the compiled program cannot be stopped"):
        module.interruptible(ended.wait, 5.0)
    assert time.monotonic() - began < 2.0
    ended.set()
