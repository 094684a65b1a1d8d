"""Where chunks run: in this process, in a small pool of spawned ones, or on a Dask cluster."""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker

import jax

from jaxdyn.errors import UsageError, missing

__all__ = ["check_address", "executor", "worker_count"]


def worker_count(workers: int | None, programs: int) -> int:
    """Number of worker processes: as requested, else one per core (one on an accelerator), never more than there are programs."""
    return max(1, min(workers or (os.cpu_count() or 1 if jax.default_backend() == "cpu" else 1), programs))


def worker_setup(workers: int) -> None:
    """Prepare a worker process: its share of the cores, its output, and its end with the process that started it."""
    # XLA's threads, read when JAX first meets the processor: with one per core in every worker they compete for the cores
    os.environ.setdefault("PJRT_NPROC", str(max(1, (os.cpu_count() or 1) // workers)))
    gc.set_threshold(50_000, 10, 10)  # tracing makes many long-lived objects, which the default thresholds would scan all the time
    os.dup2(2, 1)  # what a user's file or judge prints must not land in the JSON on standard output
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent
    threading.Thread(target=_end_with_parent, daemon=True).start()


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
def executor(workers: int, cluster: str | None) -> Iterator[cf.Executor | None]:
    """The executor for chunks, None for this process; when its block ends by an exception, workers are stopped at once."""
    if cluster is not None:
        with _dask(cluster) as pool:
            yield pool
        return
    if workers <= 1:
        yield None
        return
    context = multiprocessing.get_context("spawn")
    with _deaf():
        processes = cf.ProcessPoolExecutor(workers, mp_context=context, initializer=worker_setup, initargs=(workers,))
        for _ in range(workers):  # each starts one
            processes.submit(int)
    try:
        yield processes
        processes.shutdown()
    except BaseException:
        processes.shutdown(wait=False, cancel_futures=True)
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
def _dask(url: str) -> Iterator[cf.Executor]:
    """The executor of a Dask cluster; what goes wrong with that is said in one sentence, not by Dask's log."""
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
            yield client.get_executor()
        except cf.BrokenExecutor:
            raise UsageError(f"--cluster {url}: the Dask scheduler has ended; run the same command on another to resume") from None
