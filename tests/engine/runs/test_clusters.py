"""Chunks in other processes: a spawned pool, Dask, and workers that die."""

import concurrent.futures as cf
import multiprocessing
import os
import signal

import pytest

import jaxdyn as jd
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.runs import planning
from jaxdyn.engine.runs import sweep as sweep_module
from jaxdyn.engine.runs.blocks import Request, Runs

SPAWN = multiprocessing.get_context("spawn")


def two_devices():
    """Make a worker see two devices (set before it first asks for one)."""
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"


@pytest.fixture(scope="module")
def pool():
    with cf.ProcessPoolExecutor(2, mp_context=SPAWN) as workers:
        yield workers


@pytest.fixture
def job(toys, few_runs):
    """A function that runs one sweep of 6 chunks on any executor."""
    memory = few_runs(toys.decay, toys.Toy(), 4)
    return lambda **options: jd.sweep(toys.decay, jd.grid(toys.Toy, lr=[0.01, 0.02]), 12, memory=memory, **options)


@pytest.mark.parametrize("stored", [False, True])
def test_spawned_processes_give_the_same_bits(pool, job, tmp_path, same_bits, stored):
    assert same_bits(job(cluster=pool, out=tmp_path / "out" if stored else None), job())


@pytest.mark.slow
def test_a_sweep_begun_in_a_pool_goes_on_in_process(pool, job, tmp_path, request, same_bits):
    ds = job(cluster=pool, out=tmp_path)
    for shard in sorted(tmp_path.glob("shards/*/*.nc"))[:2]:
        shard.unlink()
    chunks_run = request.getfixturevalue("chunks_run")  # only from here on: what it puts in place does not travel to workers
    assert same_bits(job(out=tmp_path), ds)
    assert len(chunks_run) == 2


def test_verify_on_a_pool(pool, toys):
    here, there = jd.verify(toys.CLAIMS[0]), jd.verify(toys.CLAIMS[0], cluster=pool)
    assert there.verdict == "upheld"
    assert there.checks == here.checks and there.resolution == here.resolution


def test_a_trial_that_raises_in_a_worker(pool, toys):
    with pytest.raises(ValueError, match="this trial is broken"):
        jd.sweep(toys.broken, jd.grid(toys.Toy), 8, executor="vmap", cluster=pool)


class BatchJob:
    """As submitit's: no ``concurrent.futures.Future``, done when it has been asked a few times."""

    def __init__(self, function, *args):
        self.work, self.asked = (function, args), 0

    def done(self):
        self.asked += 1
        return self.asked > 2

    def result(self):
        assert self.done(), "asked for too early"
        function, args = self.work
        return function(*args)


class BatchExecutor(cf.Executor):
    """An executor with such jobs, which counts how many are in its queue."""

    jobs = ()

    def submit(self, function, *args):
        self.jobs = (*self.jobs, BatchJob(function, *args))
        return self.jobs[-1]


def test_executors_with_futures_of_their_own(job, toys, same_bits, monkeypatch):
    monkeypatch.setattr("jaxdyn.engine.runs.sweep.POLL", (0.001, 0.002))
    batch = BatchExecutor()
    assert same_bits(job(cluster=batch), job())
    assert len(batch.jobs) == 6 and all(j.asked > 2 for j in batch.jobs)
    assert jd.verify(toys.CLAIMS[0], cluster=batch).verdict == "upheld"
    with pytest.raises(ValueError, match="this trial is broken"):
        jd.sweep(toys.broken, jd.grid(toys.Toy), 8, executor="vmap", cluster=batch)


def test_so_many_chunks_at_once(toys, few_runs):
    """A pool whose other work should not wait for all chunks gets few at a time."""

    class Counting(cf.ThreadPoolExecutor):
        most = now = 0

        def submit(self, function, *args):
            self.now += 1
            self.most = max(self.most, self.now)
            future = super().submit(function, *args)
            return future

    jobs = planning.plan(
        [Request(toys.decay, jd.grid(toys.Toy), tuple(range(12)))], store=None, memory=few_runs(toys.decay, toys.Toy(), 2)
    )
    with Counting(1) as pool:

        def finished_one(runs, facts):
            pool.now -= 1

        class Told:
            start = staticmethod(lambda total, done: None)
            advance = staticmethod(finished_one)

        sweep_module.execute(jobs, Runs(), pool, Told(), at_once=2)
    assert len(jobs[0].chunks) == 6 and pool.most == 2


def test_a_full_disk_in_a_worker(pool, job, tmp_path):
    """The shards' folder is a file: every worker is refused."""
    (tmp_path / "shards").write_text("", encoding="utf-8")
    (tmp_path / "jaxdyn.json").write_text("", encoding="utf-8")
    with pytest.raises(jd.UsageError):
        job(cluster=pool, out=tmp_path)


@pytest.mark.slow
def test_trials_of_helper_files_reach_workers(pool, tmp_path):
    """A claims file split in two: the trial is imported from the file beside it."""
    (tmp_path / "beside_trials.py").write_text(
        "import jaxdyn as jd\n\n@jd.setting\nclass S:\n    a: jd.Swept = 1.0\n\n"
        "def trial(s, key):\n    return jd.observables(measured={'x': 2 * s.a})\n",
        encoding="utf-8",
    )
    (tmp_path / "split_claims.py").write_text("from beside_trials import S, trial\n", encoding="utf-8")
    module = load_file(tmp_path / "split_claims.py")
    ds = jd.sweep(module.trial, jd.grid(module.S, a=[1.0, 2.0]), cluster=pool)
    assert ds.measured_x.values.ravel().tolist() == [2.0, 4.0]


@pytest.mark.slow
def test_workers_with_other_devices_than_the_planner(job, tmp_path, same_bits):
    """Shards are found where the worker wrote them, also where planner and workers have different devices."""
    with cf.ProcessPoolExecutor(1, mp_context=SPAWN, initializer=two_devices) as other:
        ds = job(cluster=other, out=tmp_path)
    assert ds.sizes["seed"] == 12 and (ds.status == 0).all()
    assert same_bits(job(out=tmp_path), ds)


@pytest.mark.slow
def test_a_pool_whose_worker_dies_says_so_and_the_sweep_goes_on(job, tmp_path, same_bits):
    with cf.ProcessPoolExecutor(1, mp_context=SPAWN) as doomed:
        os.kill(doomed.submit(os.getpid).result(), signal.SIGKILL)
        with pytest.raises(cf.BrokenExecutor):
            job(cluster=doomed, out=tmp_path)
    assert same_bits(job(out=tmp_path), job())


@pytest.mark.slow
def test_chunks_that_an_executor_cancels_are_no_errors_of_the_trial(job, tmp_path, same_bits):
    """As Dask does with all of them when its scheduler ends."""

    class Forgetful(cf.ThreadPoolExecutor):
        def submit(self, function, *args):
            future = cf.Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    with Forgetful() as pool, pytest.raises(cf.BrokenExecutor, match="cancelled"):
        job(cluster=pool, out=tmp_path)
    assert same_bits(job(out=tmp_path), job())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_dask_gives_the_same_bits(job, toys, tmp_path, same_bits):
    """Two threads of a Dask cluster in this process: stored, in memory, and a trial that raises."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        executor = client.get_executor()
        assert same_bits(job(cluster=executor, out=tmp_path), job()) and same_bits(job(cluster=executor), job())
        assert len(list(tmp_path.glob("shards/*/*.nc"))) == 6
        with pytest.raises(ValueError, match="this trial is broken"):
            jd.sweep(toys.broken, jd.grid(toys.Toy), 8, executor="vmap", cluster=executor)
        executor.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dask_worker_killed_in_mid_sweep_loses_nothing(toys, few_runs, tmp_path, same_bits):
    distributed = pytest.importorskip("distributed")
    import dask

    class Killer:
        """Progress that kills one worker after the third chunk."""

        chunks = total = 0
        victim = None

        def start(self, total, done):
            self.total = total

        def advance(self, runs, facts):
            self.chunks += 1
            if self.chunks == 3:
                os.kill(self.victim, signal.SIGKILL)

    killer, memory = Killer(), few_runs(toys.decay, toys.Toy(), 4)
    grid = jd.grid(toys.Toy, lr=[0.01, 0.02])
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": "spawn"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        killer.victim = next(iter(client.run(os.getpid).values()))
        executor = client.get_executor()
        ds = jd.sweep(toys.decay, grid, 24, out=tmp_path, memory=memory, cluster=executor, progress=killer)
        executor.shutdown()
    assert killer.chunks == 12
    assert same_bits(ds, jd.sweep(toys.decay, grid, 24, memory=memory))
    assert len(list(tmp_path.glob("shards/*/*.nc"))) >= 12


@pytest.mark.slow
def test_chunks_of_a_compiled_program_do_not_wait_for_the_first(toys, few_runs):
    class Counting(cf.ThreadPoolExecutor):
        def __init__(self):
            super().__init__(1)
            self.before = 0

        def submit(self, *args, **kwargs):
            self.before += not finished
            return super().submit(*args, **kwargs)

    def waited(compiled):
        finished.clear()
        jobs = planning.plan(
            [Request(toys.decay, jd.grid(toys.Toy), tuple(range(12)))], store=None, memory=few_runs(toys.decay, toys.Toy(), 2)
        )
        told = type("Told", (), {"start": lambda *_: None, "advance": lambda *_: finished.append(1)})()
        with Counting() as pool:
            sweep_module.execute(jobs, Runs(), pool, told, compiled=[job.program for job in jobs] if compiled else ())
            return pool.before, len(jobs[0].chunks)

    finished = []
    before, chunks = waited(compiled=False)
    assert (before, chunks) == (1, 6)
    assert waited(compiled=True) == (6, 6)


def test_a_pool_that_forks_is_refused(job):
    """At once, before it hangs."""
    with cf.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as forking:
        with pytest.raises(jd.UsageError, match=r'it forks .*; make it with mp_context=multiprocessing.get_context\("spawn"\)$'):
            job(cluster=forking)


@pytest.mark.slow
def test_a_server_of_forks_gives_the_same_bits(job, same_bits):
    with cf.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver")) as served:
        assert same_bits(job(cluster=served), job())
