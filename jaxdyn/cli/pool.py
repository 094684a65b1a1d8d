"""Where chunks run: in this process, in a small pool of spawned ones, or on a Dask cluster.

Where others make the runs on cards, this process opens none: each worker has cards of its own, and plans are made for these.
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
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import resource_tracker
from typing import Any

import jax

from jaxdyn.cli.cards import VISIBLE, shared_cards, shares
from jaxdyn.engine.devices import Devices, elsewhere, of_workers, own_devices
from jaxdyn.engine.failure import let_through
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
    """The cards of each worker process that was asked for, if they have some; to be called before anything opens a device.

    Where other processes make the runs, on cards or on a cluster, this one is kept to the CPU.

    Raises:
        UsageError: workers that there are not enough cards for, or an address that is none.
    """
    if cluster is not None:
        check_address(cluster)
    cards = () if cluster is not None else shared_cards(workers)
    if cluster is not None or cards:
        jax.config.update("jax_platforms", "cpu")
    return shares(cards, workers) if cards and workers else []


def worker_count(workers: int | None, programs: int) -> int:
    """Number of worker processes: as requested, else one per core (one on an accelerator), never more than there are programs."""
    return max(1, min(workers or (os.cpu_count() or 1 if jax.default_backend() == "cpu" else 1), programs))


def worker_setup(workers: int, given: Any = None, said: Any = None) -> None:
    """Prepare a worker process: its cards, its share of the cores, its output, and its end with the process that started it.

    Args:
        workers: how many there are.
        given: a queue with the names of each worker's cards; None where all run on CPU.
        said: a queue that takes what devices the worker has, or why it cannot open them; None: nobody asks.
    """
    if given is None:
        jax.config.update("jax_platforms", "cpu")
    else:
        os.environ[VISIBLE] = given.get()
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        jax.config.update("jax_platforms", "cuda,cpu")  # a card that cannot be opened is an error, not a run on CPU
    # XLA's threads, read when JAX first meets the processor: with one per core in every worker they compete for the cores
    os.environ.setdefault("PJRT_NPROC", str(max(1, (os.cpu_count() or 1) // workers)))
    gc.set_threshold(50_000, 10, 10)  # tracing makes many long-lived objects, which the default thresholds would scan all the time
    os.dup2(2, 1)  # what a user's file or judge prints must not land in the JSON on standard output
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if said is not None:
        said.put(_own_devices())


def _own_devices() -> Devices | str:
    """What this process has, opened; or why that is not possible."""
    try:
        return own_devices()
    except Exception as error:  # whatever JAX or a driver raises
        return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _end_with_parent() -> None:
    """End this process when the one that started it is gone: killed, it stops nobody, and a worker would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Processes that are started here do not see Ctrl-C: it is handled by the parent, and while they import it would be shown."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")  # it tidies up after an interrupted process, and says so
    resource_tracker.ensure_running()  # started below, it would let the signal through again
    sys.warnoptions.pop()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextlib.contextmanager
def executor(workers: int, cluster: str | None, cards: Sequence[str] = ()) -> Iterator[tuple[cf.Executor | None, int]]:
    """The executor for chunks, None for this process, and how many chunks it runs at a time.

    Within the block plans are made for the devices of its workers.

    Args:
        workers: how many processes.
        cluster: address of a Dask scheduler, instead of processes here.
        cards: from :func:`reserved`.

    Raises:
        UsageError: a worker finds no card, or has none of the packages.
    """
    if cluster is not None:
        with _dask(cluster) as (pool, size), elsewhere(_asked(pool, f"--cluster {cluster}")):
            yield pool, size
    elif cards:
        context = multiprocessing.get_context("spawn")
        given, said = context.SimpleQueue(), context.Queue()
        for share in cards:
            given.put(share)
        with processes(workers, given, said) as pool, elsewhere(opened(pool, said, workers)):
            yield pool, workers
    elif workers > 1:
        with processes(workers) as pool:
            yield pool, workers
    else:
        yield None, 1


def opened(pool: cf.Executor, said: Any, workers: int) -> Devices:
    """What every worker has, once all have opened their cards; of the memory the least.

    Raises:
        UsageError: a worker cannot open its cards. It would take most chunks otherwise, and fail each of them at once.
    """
    found: list[Devices | str] = []
    while len(found) < workers:
        try:
            found.append(said.get(timeout=1.0))
        except queue.Empty:
            pool.submit(int)  # refused where a worker has died
    for one in found:
        if isinstance(one, str):
            raise UsageError(f"--workers: a worker cannot use its cards ({one})")
        if one.on_cpu:
            raise UsageError("--workers: JAX finds no card in a worker that has cards of its own")
    devices = [one for one in found if isinstance(one, Devices)]
    return dataclasses.replace(devices[0], memory=min(one.memory for one in devices))


def _asked(pool: cf.Executor, option: str) -> Devices:
    """What devices a worker has; one that cannot say it is one sentence."""
    try:
        return of_workers(pool)
    except cf.BrokenExecutor:
        raise
    except BaseException as error:
        let_through(error)
        reason = (str(error).splitlines() or [""])[0]
        raise UsageError(f"{option}: a worker cannot use its devices ({type(error).__name__}: {reason})") from None


@contextlib.contextmanager
def processes(workers: int, given: Any = None, said: Any = None) -> Iterator[cf.ProcessPoolExecutor]:
    """Spawned processes; when the block ends by an exception, they are stopped at once. Queues as in :func:`worker_setup`."""
    context = multiprocessing.get_context("spawn")
    with _deaf():
        pool = cf.ProcessPoolExecutor(workers, mp_context=context, initializer=worker_setup, initargs=(workers, given, said))
        for _ in range(workers):  # each starts one
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
    """The executor of a Dask cluster, and how many chunks that runs at a time.

    What goes wrong with the cluster is said in one sentence, not by Dask's log.
    """
    try:
        from distributed import Client
    except ImportError:
        raise missing("--cluster", "distributed", "dask") from None
    for name in [n for n in logging.root.manager.loggerDict if n.partition(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # each has a level of its own
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
    """Where workers of a cluster declare the resource ``GPU``, chunks are for these alone, one at a time for each of its GPUs."""
    return {"resources": {"GPU": 1}} if any(worker["resources"].get("GPU") for worker in workers.values()) else {}


def cluster_size(workers: Mapping[str, Mapping[str, Any]]) -> int:
    """How many chunks the workers of a cluster run at a time: one for each GPU that they declare, or else for each thread."""
    gpus = sum(int(worker["resources"].get("GPU", 0)) for worker in workers.values())
    return max(1, gpus or sum(worker["nthreads"] for worker in workers.values()))
