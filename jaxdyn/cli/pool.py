"""Executors for chunks: this process, a pool of spawned processes, or a Dask cluster.

If other processes run on accelerators, this process opens none: each worker has cards of its own, and plans are made for those.
"""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import dataclasses
import gc
import logging
import multiprocessing
import os
import queue
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax

from jaxdyn.cli.cards import VISIBLE, shared_cards, shares
from jaxdyn.engine.base.devices import Devices, elsewhere, of_workers, own_devices, xla_threads
from jaxdyn.engine.base.failure import let_through
from jaxdyn.engine.base.processes import depend_on_parent, without_interrupts
from jaxdyn.errors import UsageError, missing

__all__ = [
    "check_address",
    "cluster_options",
    "cluster_size",
    "executor",
    "opened",
    "processes",
    "reserved",
    "worker_count",
    "worker_setup",
]


def reserved(workers: int | None, cluster: str | None) -> list[str]:
    """The cards of each requested worker process, empty for workers on CPU; call it before anything opens a device.

    If runs are made on cards of other processes or on a cluster, this process is restricted to the CPU.

    Raises:
        UsageError: more workers than cards, or an invalid address.
    """
    if cluster is not None:
        check_address(cluster)
    cards = () if cluster is not None else shared_cards(workers)
    if cluster is not None or cards:
        jax.config.update("jax_platforms", "cpu")
    return shares(cards, workers) if cards and workers else []


def worker_count(workers: int | None, programs: int) -> int:
    """Number of worker processes: as requested, else one per core (one on an accelerator), at most one per program."""
    return max(1, min(workers or (os.cpu_count() or 1 if jax.default_backend() == "cpu" else 1), programs))


def worker_setup(workers: int, card_sets: Any = None, reports: Any = None) -> None:
    """Prepare a worker process: its cards, its share of the cores, its output; it ends with the process that started it.

    Args:
        workers: number of workers.
        card_sets: a queue with the names of each worker's cards; None if all run on CPU.
        reports: a queue for the worker's devices, or the reason why it cannot open them; None: no report.
    """
    # devices: none but the CPU, or this worker's cards
    if card_sets is None:
        jax.config.update("jax_platforms", "cpu")
    else:
        os.environ[VISIBLE] = card_sets.get()
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        jax.config.update("jax_platforms", "cuda,cpu")  # a card that cannot be opened is an error, not a run on CPU
    # XLA reads its number of threads when JAX first uses the CPU; one per core in every worker would compete for the cores
    os.environ.setdefault("PJRT_NPROC", str(xla_threads(workers)))
    gc.set_threshold(50_000, 10, 10)  # tracing makes many long-lived objects; the default thresholds would scan them all the time
    os.dup2(2, 1)  # prints of a user's file or judge must not end up in the JSON on standard output
    depend_on_parent()
    if reports is not None:
        reports.put(_own_devices())


def _own_devices() -> Devices | str:
    """This process's devices, which it opens; or the reason why it cannot."""
    try:
        return own_devices()
    except Exception as error:  # whatever JAX or a driver raises
        return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


@contextlib.contextmanager
def executor(workers: int, cluster: str | None, cards: Sequence[str] = ()) -> Iterator[tuple[cf.Executor | None, int]]:
    """The executor for chunks (None for this process), and the number of chunks it runs at a time.

    Within the block, plans are made for the devices of its workers.

    Args:
        workers: number of processes.
        cluster: address of a Dask scheduler to use instead of processes on this machine.
        cards: from :func:`reserved`.

    Raises:
        UsageError: a worker finds no card, or lacks the packages.
    """
    if cluster is not None:
        with _dask(cluster) as (pool, size), elsewhere(_asked(pool, f"--cluster {cluster}")):
            yield pool, size
    elif cards:
        context = multiprocessing.get_context("spawn")
        card_sets, reports = context.SimpleQueue(), context.Queue()
        for share in cards:
            card_sets.put(share)
        with processes(workers, card_sets, reports) as pool, elsewhere(opened(pool, reports, workers)):
            yield pool, workers
    elif workers > 1:
        with processes(workers) as pool, elsewhere(of_processes(workers)):
            yield pool, workers
    else:
        yield None, 1


def of_processes(workers: int) -> Devices:
    """The devices of each of so many worker processes on this machine's processor."""
    return dataclasses.replace(own_devices(), threads=xla_threads(workers))


def opened(pool: cf.Executor, reports: Any, workers: int) -> Devices:
    """The devices of every worker, once all have opened their cards, with the smallest memory among them.

    Raises:
        UsageError: a worker cannot open its cards. Otherwise it would take most chunks and fail each of them at once.
    """
    reported: list[Devices | str] = []
    while len(reported) < workers:
        try:
            reported.append(reports.get(timeout=1.0))
        except queue.Empty:
            pool.submit(int)  # raises if a worker has died
    for one in reported:
        if isinstance(one, str):
            raise UsageError(f"--workers: a worker cannot use its cards ({one})")
        if one.on_cpu:
            raise UsageError("--workers: JAX finds no card in a worker that has cards of its own")
    devices = [one for one in reported if isinstance(one, Devices)]
    return dataclasses.replace(devices[0], memory=min(one.memory for one in devices))


def _asked(pool: cf.Executor, option: str) -> Devices:
    """The devices of a worker; if it cannot tell, the error is one sentence."""
    try:
        return of_workers(pool)
    except cf.BrokenExecutor:
        raise
    except BaseException as error:
        let_through(error)
        reason = (str(error).splitlines() or [""])[0]
        raise UsageError(f"{option}: a worker cannot use its devices ({type(error).__name__}: {reason})") from None


@contextlib.contextmanager
def processes(workers: int, card_sets: Any = None, reports: Any = None) -> Iterator[cf.ProcessPoolExecutor]:
    """Spawned processes, stopped at once if the block raises; queues as in :func:`worker_setup`."""
    context = multiprocessing.get_context("spawn")
    with without_interrupts():
        pool = cf.ProcessPoolExecutor(workers, mp_context=context, initializer=worker_setup, initargs=(workers, card_sets, reports))
        for _ in range(workers):  # each submission starts one process
            pool.submit(int)
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise


def check_address(url: str) -> str:
    """The address of a Dask scheduler behind ``dask://HOST:PORT``.

    Raises:
        UsageError: another kind of address.
    """
    scheme, _, address = url.partition("://")
    if scheme != "dask" or ":" not in address:
        raise UsageError(f"--cluster {url} is not allowed: write dask://HOST:PORT of a Dask scheduler")
    return f"tcp://{address}"


@contextlib.contextmanager
def _dask(url: str) -> Iterator[tuple[cf.Executor, int]]:
    """The executor of a Dask cluster, and the number of chunks it runs at a time.

    Problems with the cluster are reported in one sentence instead of Dask's log.
    """
    try:
        from distributed import Client
    except ImportError:
        raise missing("--cluster", "distributed", "dask") from None
    for name in [n for n in logging.root.manager.loggerDict if n.partition(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # every logger has its own level
    try:
        client = Client(check_address(url), timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(f"--cluster {url}: no Dask scheduler answers there ({type(error).__name__})") from None
    with client:
        try:
            members = client.scheduler_info(n_workers=-1)["workers"]
            yield client.get_executor(**cluster_options(members)), cluster_size(members)
        except cf.BrokenExecutor:
            raise UsageError(f"--cluster {url}: the Dask scheduler has ended; run the same command on another to resume") from None


def cluster_options(workers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Options that send chunks only to workers with the resource ``GPU``, one at a time per GPU; empty if no worker declares it."""
    return {"resources": {"GPU": 1}} if any(worker["resources"].get("GPU") for worker in workers.values()) else {}


def cluster_size(workers: Mapping[str, Mapping[str, Any]]) -> int:
    """Number of chunks that the workers of a cluster run at a time: one per declared GPU, or else one per thread."""
    gpus = sum(int(worker["resources"].get("GPU", 0)) for worker in workers.values())
    return max(1, gpus or sum(worker["nthreads"] for worker in workers.values()))
