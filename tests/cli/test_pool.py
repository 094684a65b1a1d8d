"""Where chunks run: how many processes, addresses of clusters, and a Dask scheduler in this process."""

import concurrent.futures as cf
import multiprocessing
import os
import socket
import subprocess
import sys
import time

import pytest

from jaxdyn.cli import pool
from jaxdyn.errors import UsageError

ENDLESS = """
import pathlib
import sys
import jax
import jaxdyn as jd

@jd.setting
class Toy:
    lr: jd.Swept = 0.5

def trial(s, key):
    if "dask_worker" in sys.argv[0]:
        pathlib.Path("running").touch()
    x = jax.lax.while_loop(lambda x: x < 1.0, lambda x: x + s.lr, 0.0)
    return jd.observables(predicted={"x": x}, measured={"x": x})

CLAIMS = [jd.Claim(
    id="mine.x", title="It ends", statement="It ends.",
    source="nobody's", evidence="algebra", trial=trial, bounds="derived", quick=jd.grid(Toy),
    seeds=1, judge=lambda ds: [jd.at_most("error", abs(ds.measured_x - ds.predicted_x), 1e-9)],
    controls={"off": lambda ds: ds.assign(measured_x=2 * ds.measured_x)},
)]
"""


@pytest.mark.parametrize("cores", [1, 2, 64, None])
@pytest.mark.parametrize("programs", [0, 1, 3, 100])
@pytest.mark.parametrize("asked", [None, 1, 5])
def test_there_are_no_more_workers_than_programs_cores_or_asked_for(monkeypatch, asked, programs, cores):
    monkeypatch.setattr(pool.os, "cpu_count", lambda: cores)
    count = pool.worker_count(asked, programs)
    assert 1 <= count <= max(1, programs) and count <= (asked or cores or 1)
    assert count == max(1, programs) or count == (asked or cores or 1), "as many as that"


def test_an_accelerator_is_shared_by_nobody(monkeypatch):
    monkeypatch.setattr(pool.jax, "default_backend", lambda: "gpu")
    assert pool.worker_count(None, 50) == 1 and pool.worker_count(3, 50) == 3


@pytest.mark.parametrize("url", ["dask://here:8786", "dask://10.0.0.1:1"])
def test_an_address_is_that_of_a_scheduler(url):
    assert pool.check_address(url) == url.replace("dask://", "tcp://")


@pytest.mark.parametrize("url", ["here:8786", "tcp://here:8786", "dask://here", "dask:here:1", ""])
def test_other_addresses_are_refused(url):
    with pytest.raises(UsageError, match=r"write dask://HOST:PORT"):
        pool.check_address(url)


def test_one_worker_is_this_process():
    with pool.executor(1, None) as executor:
        assert executor is None


def test_workers_that_are_left_by_an_exception_end_at_once():
    """A job of a minute does not hold up the end, and nobody is left behind."""
    start, before = time.monotonic(), set(multiprocessing.active_children())
    with pytest.raises(KeyError, match="a bug"), pool.executor(2, None) as executor:
        assert isinstance(executor, cf.ProcessPoolExecutor)
        executor.submit(time.sleep, 60)
        raise KeyError("a bug")
    # not joined here: the pool's own thread waits for the same processes, and who comes second learns nothing of their end
    while set(multiprocessing.active_children()) - before and time.monotonic() - start < 30:
        time.sleep(0.01)
    assert time.monotonic() - start < 30


def test_a_worker_has_its_share_of_the_cores_and_leaves_standard_output_alone(monkeypatch):
    done = []
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    monkeypatch.setattr(pool.os, "cpu_count", lambda: 8)
    monkeypatch.setattr(pool.os, "dup2", lambda *ends: done.append(ends))
    monkeypatch.setattr(pool.signal, "signal", lambda *what: done.append(what))
    pool.worker_setup(3)
    assert os.environ["PJRT_NPROC"] == "2" and done == [(2, 1), (pool.signal.SIGINT, pool.signal.SIG_IGN)]


@pytest.mark.slow
def test_a_dask_scheduler_that_ends_is_one_sentence(tmp_path):
    """Killed while two workers calculate; the same command on this machine ends what was begun."""
    pytest.importorskip("distributed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    dask = [sys.executable, "-m"]
    commands = [
        ["distributed.cli.dask_scheduler", "--host", address, "--no-dashboard"],
        ["distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny"],
    ]
    quiet = {"cwd": tmp_path, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler, worker = (subprocess.Popen([*dask, *command], **quiet) for command in commands)
    (tmp_path / "mine.py").write_text(ENDLESS)
    command = [*dask, "jaxdyn", "verify", "--load", "mine.py", "mine", "--cluster", f"dask://{address}", "--set", "lr=0"]
    try:
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            while not (tmp_path / "running").exists():
                time.sleep(0.1)
                assert process.poll() is None, process.stderr.read()
            scheduler.kill()
            said = process.stderr.read()
    finally:
        for process_of_dask in (worker, scheduler):
            process_of_dask.kill()
            process_of_dask.wait()
    assert process.returncode == 2
    assert said.splitlines()[1:] == [
        f"jaxdyn: --cluster dask://{address}: the Dask scheduler has ended; run the same command on another to resume"
    ]
