"""Where chunks run: how many processes, addresses of clusters, and a Dask scheduler in this process."""

import concurrent.futures as cf
import itertools
import json
import multiprocessing
import os
import queue
import socket
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool

import jax
import pytest
import xarray as xr

from jaxdyn import theories
from jaxdyn.cli import cards, pool
from jaxdyn.cli.main import main as cli
from jaxdyn.engine.base import devices
from jaxdyn.engine.base.devices import Devices
from jaxdyn.errors import UsageError

from ..engine.conftest import TOYS

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
    with pool.executor(1, None) as found:
        assert found == (None, 1)


def test_workers_that_are_left_by_an_exception_end_at_once():
    """A job of a minute does not hold up the end, and nobody is left behind."""
    start, before = time.monotonic(), set(multiprocessing.active_children())
    with pytest.raises(KeyError, match="a bug"), pool.executor(2, None) as (executor, count):
        assert isinstance(executor, cf.ProcessPoolExecutor) and count == 2
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
    monkeypatch.setattr(pool, "depend_on_parent", lambda: done.append("depends"))
    pool.worker_setup(3)
    assert os.environ["PJRT_NPROC"] == "2" and done == [(2, 1), "depends"]


def test_a_worker_takes_the_next_cards_and_no_memory_in_advance(monkeypatch):
    """What the user says of memory stands; without cards, JAX is kept to the CPU."""
    asked = []
    given = multiprocessing.get_context("spawn").SimpleQueue()
    monkeypatch.setattr(pool.os, "dup2", lambda *_: None)
    monkeypatch.setattr(pool, "depend_on_parent", lambda: None)
    monkeypatch.setattr(pool.jax.config, "update", lambda *what: asked.append(what))
    for name in ("PJRT_NPROC", "CUDA_VISIBLE_DEVICES", "XLA_PYTHON_CLIENT_PREALLOCATE"):
        monkeypatch.setenv(name, "before")  # put back afterwards
        monkeypatch.delenv(name)
    pool.worker_setup(2)
    assert asked == [("jax_platforms", "cpu")] and "CUDA_VISIBLE_DEVICES" not in os.environ
    for share in ("4,5", "6,7"):
        given.put(share)
        pool.worker_setup(2, given)
        assert os.environ["CUDA_VISIBLE_DEVICES"] == share and asked.pop() == ("jax_platforms", "cuda,cpu")
        assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == ("false" if share == "4,5" else "true")
        monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")


def spent(_):
    """The name of the worker of a cluster, and from when until when it was here."""
    import distributed

    start = time.time()
    time.sleep(0.2)
    return distributed.get_worker().name, start, time.time()


def surroundings(_):
    """What a worker's environment says of its cards, and the platforms that JAX may use; each call takes a while."""
    time.sleep(0.2)
    names = ("CUDA_VISIBLE_DEVICES", "XLA_PYTHON_CLIENT_PREALLOCATE")
    return os.getpid(), *(os.environ.get(name) for name in names), jax.config.values["jax_platforms"]


@pytest.mark.slow
@pytest.mark.parametrize("names", [pytest.param((), id="CPU"), pytest.param(("0", "1", "2", "5", "7"), id="five cards")])
def test_each_worker_has_cards_of_its_own(monkeypatch, names):
    """Real processes, with cards that are not there: two for each of two workers, one is left over."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    given = multiprocessing.get_context("spawn").SimpleQueue() if names else None
    for share in cards.shares(names, 2) if names else ():
        given.put(share)
    with pool.processes(2, given) as workers:
        said = {found[0]: found[1:] for found in workers.map(surroundings, range(8))}
    assert len(said) == 2
    given = [("0,1", "false", "cuda,cpu"), ("2,5", "false", "cuda,cpu")] if names else [("3", None, "cpu")] * 2
    assert sorted(said.values()) == given


@pytest.mark.slow
def test_a_card_that_a_worker_does_not_find_is_no_run_on_cpu(monkeypatch):
    if cards.nvidia_cards():
        pytest.skip("there is one")
    with pytest.raises(UsageError, match=r"^--workers: JAX finds no card in a worker that has cards of its own$"):
        with pool.executor(1, None, ("0", "1")):
            pass


def told(*answers):
    """A queue in which workers have said so."""
    said = queue.SimpleQueue()
    for answer in answers:
        said.put(answer)
    return said


def test_every_worker_opens_its_cards_before_any_run():
    """One that could not would fail chunk after chunk at once; the least memory of all is planned for."""
    found = pool.opened(None, told(Devices("gpu", 2, 90, "H100"), Devices("gpu", 2, 80, "H100")), 2)
    assert found == Devices("gpu", 2, 80) and found.kind == "H100"
    words = r"^--workers: a worker cannot use its cards \(RuntimeError: Unable to initialize backend 'cuda': old driver\)$"
    with pytest.raises(UsageError, match=words):
        pool.opened(None, told(Devices("gpu"), "RuntimeError: Unable to initialize backend 'cuda': old driver"), 2)


def test_a_worker_that_dies_while_it_opens_its_cards_is_not_waited_for():
    class Dead(cf.Executor):
        def submit(self, *_):
            raise BrokenProcessPool("a child process terminated abruptly")

    with pytest.raises(cf.BrokenExecutor):
        pool.opened(Dead(), told(Devices("gpu")), 2)


def test_a_worker_says_why_it_cannot_open_its_cards(monkeypatch):
    def broken():
        raise RuntimeError("Unable to initialize backend 'cuda': old driver\nand more")

    said = queue.SimpleQueue()
    monkeypatch.setattr(pool.os, "dup2", lambda *_: None)
    monkeypatch.setattr(pool, "depend_on_parent", lambda: None)
    pool.worker_setup(1, None, said)
    assert said.get() == Devices("cpu")
    monkeypatch.setattr(pool, "own_devices", broken)
    pool.worker_setup(1, None, said)
    assert said.get() == "RuntimeError: Unable to initialize backend 'cuda': old driver"


@pytest.mark.slow
def test_plans_are_for_the_cards_of_workers_and_this_process_opens_none(monkeypatch):
    asked = []
    monkeypatch.setattr(pool, "shared_cards", lambda workers: ("0", "1") if workers == 2 else ())
    monkeypatch.setattr(pool.jax.config, "update", lambda *what: asked.append(what))
    assert pool.reserved(None, None) == pool.reserved(1, None) == [] and asked == []
    assert pool.reserved(2, None) == ["0", "1"] and asked == [("jax_platforms", "cpu")]
    assert pool.reserved(2, "dask://here:1") == [] and len(asked) == 2, "on a cluster as well"
    monkeypatch.setattr(pool, "opened", lambda *_: Devices("gpu", 1, 100))
    with pool.executor(1, None, ("0", "1")) as (workers, count):
        assert isinstance(workers, cf.ProcessPoolExecutor) and count == 1, "also of one worker"
        assert devices.devices() == Devices("gpu", 1, 100)
        (found,) = {found[1] for found in workers.map(surroundings, range(2))}
        assert found == "0", "the cards that are a worker's where all work, so that stored runs are those of any number"
    assert devices.devices() == Devices("cpu")


@pytest.mark.slow
def test_a_verification_on_cards(monkeypatch, tmp_path, capsys):
    """With two that are not there: plans are for them, the workers make the runs, the results name them, no claim runs here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(theories, "__path__", [])
    monkeypatch.setenv("EQX_ON_ERROR", "nan")
    monkeypatch.setattr(pool, "shared_cards", lambda workers: ("0", "1"))
    monkeypatch.setattr(pool, "opened", lambda *_: Devices("gpu", 1, 2**30, "Pretended"))
    monkeypatch.setattr("jaxdyn.engine.runs.sweep.run_chunk", None)  # here
    assert cli(["verify", "toy.decay", "--load", str(TOYS), "--workers", "2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [claim["verdict"] for claim in result["claims"]] == ["upheld"]
    assert result["environment"]["device"] == "Pretended (1 for JAX in each of 1 worker)"
    facts = [json.loads(xr.load_dataset(path).attrs["facts"]) for path in tmp_path.glob("report/shards/*/*.nc")]
    assert {fact["program"]["executor"] for fact in facts} == {"flat"}


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
    (tmp_path / "mine.py").write_text(ENDLESS, encoding="utf-8")
    command = [*dask, "jaxdyn", "verify", "--load", "mine.py", "mine", "--cluster", f"dask://{address}", "--set", "lr=0"]
    try:
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, encoding="utf-8") as process:
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
    assert said.splitlines()[-1] == (
        f"jaxdyn: --cluster dask://{address}: the Dask scheduler has ended; run the same command on another to resume"
    )
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("declared", "options"), [([{}, {}], {}), ([{}, {"GPU": 2.0}], {"resources": {"GPU": 1}}), ([{"MEM": 1.0}], {}), ([], {})]
)
def test_chunks_are_for_workers_that_declare_a_gpu(declared, options):
    assert pool.cluster_options({str(i): {"resources": one} for i, one in enumerate(declared)}) == options


def test_a_cluster_runs_as_many_chunks_as_its_gpus_or_threads():
    plain, two = {"resources": {}, "nthreads": 3}, {"resources": {"GPU": 2.0}, "nthreads": 8}
    assert [pool.cluster_size(dict(enumerate(members))) for members in ([plain, plain], [plain, two], [])] == [6, 2, 1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_with_gpus_makes_all_runs_on_them():
    """Two workers, one of which declares a GPU: every chunk goes there, one at a time, and plans are for its devices."""
    distributed = pytest.importorskip("distributed")
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=3"}
    options = {"with": {"resources": {"GPU": 1}, "env": flags}, "without": {}}
    kinds = {name: {"cls": distributed.Nanny, "options": {"nthreads": 2, **own}} for name, own in options.items()}
    scheduler = {"cls": distributed.Scheduler, "options": {"port": 0, "dashboard_address": None}}
    with distributed.SpecCluster(workers=kinds, scheduler=scheduler) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        url = cluster.scheduler_address.replace("tcp://", "dask://")
        with pool.executor(1, url) as (executor, count):
            assert devices.devices() == Devices("cpu", 3) and count == 1
            times = list(executor.map(spent, range(4)))
    assert {worker for worker, *_ in times} == {"with"}
    spans = sorted(span for _, *span in times)
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
