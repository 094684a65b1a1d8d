"""Processes killed or interrupted in the middle of a sweep, and two on one folder."""

import random
import signal
import subprocess
import sys

import pytest

from jaxdyn.errors import StoreError
from tests.engine.conftest import SEEDS, TOYS

CHILD = """
import sys, time
from jaxdyn.engine.base.reference import load_file
import jaxdyn as jd

toys = load_file({toys!r})

class Told:
    def start(self, total, done):
        print("start", done, flush=True)
    def advance(self, runs, facts):
        print("chunk", flush=True)
        time.sleep({pause})

grid = jd.grid(toys.Toy, lr=[0.01, 0.02])
jd.sweep(toys.decay, grid, {seeds}, out={out!r}, memory={memory}, progress=Told())
print("done", flush=True)
sys.stdin.read()
"""


def child(out, memory, seeds=SEEDS, pause=0.0):
    code = CHILD.format(toys=str(TOYS), out=str(out), memory=memory, seeds=seeds, pause=pause)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code], encoding="utf-8", **pipes)


def killed(out, memory, seeds, pause, after, delay):
    """Start a sweep and kill -9 it some moments after its ``after``-th chunk; returns how many runs it found stored."""
    with child(out, memory, seeds, pause) as process:
        found = int(process.stdout.readline().split()[1])
        for _ in range(after):
            process.stdout.readline()
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.kill()
        process.stdin.close()
    return found


def kill_and_resume(toys, few_runs, out, swept, same_bits, chunks_run, moments, seeds, pause=0.0):
    """Killed at these moments, then finished: the bits of an unbroken sweep, and no stored chunk run twice."""
    memory = few_runs(toys.decay, toys.Toy(), 4)
    counts = [killed(out, memory, seeds, pause, after, delay) for after, delay in moments]
    assert counts == sorted(counts), "nothing that was stored is lost"
    left = seeds // 2 - len(list(out.glob("shards/*/*.nc")))
    assert left > 0, "the sweep was not killed in its middle"
    resumed = swept(out, seeds=seeds)
    assert len(chunks_run) == left
    assert same_bits(resumed, swept(None, seeds=seeds))
    assert not list(out.rglob(".tmp-*"))
    return resumed


@pytest.mark.slow
def test_killed_in_mid_sweep_and_resumed(toys, few_runs, tmp_path, swept, same_bits, chunks_run):
    draw = random.Random()
    moments = [(3, draw.uniform(0, 0.02)), (2, draw.uniform(0, 0.02))]
    ds = kill_and_resume(toys, few_runs, tmp_path / "out", swept, same_bits, chunks_run, moments, 80, pause=0.01)
    assert (ds.status == 0).all() and ds.sizes["seed"] == 80


@pytest.mark.slow
def test_killed_at_many_moments_and_resumed(toys, few_runs, tmp_path, swept, same_bits, chunks_run):
    draw = random.Random()
    moments = [(0, 0.0), *((draw.randint(0, 5), draw.uniform(0, 0.05)) for _ in range(7))]
    ds = kill_and_resume(toys, few_runs, tmp_path / "out", swept, same_bits, chunks_run, moments, 500)
    assert (ds.status == 0).all() and ds.sizes["seed"] == 500


def test_one_process_a_folder_and_an_interrupt(tmp_path, toys, few_runs, swept, chunks_run, same_bits):
    """A second process is refused while the first runs; the first one's interrupt leaves a folder that goes on."""
    out = tmp_path / "out"
    with child(out, few_runs(toys.decay, toys.Toy(), 4), pause=60) as process:
        assert [process.stdout.readline(), process.stdout.readline()] == ["start 0\n", "chunk\n"]
        with pytest.raises(StoreError, match=f"in use by process {process.pid}"):
            swept(out)
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.stderr.read()
    ds = swept(out)
    assert len(chunks_run) == 5, "one of six was stored"
    assert same_bits(ds, swept(None))
