"""The devices that runs are made on: those that JAX finds in this process, or those of its workers.

Plans depend on them. A process that only hands out work opens no card: a worker says what it has (:func:`of_workers`), and plans
are made for that (:func:`elsewhere`).
"""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import jax

__all__ = ["CPU_BUDGET", "Devices", "budget", "devices", "elsewhere", "of_workers", "own_devices"]

CPU_BUDGET = 2 * 2**30  # bytes of one chunk's working memory on CPU: fixed, so that chunk shapes do not depend on the moment
SHARE = 0.5  # of a card's memory for one chunk: what XLA allots at once, and values that were not foreseen, need room, too


@dataclass(frozen=True)
class Devices:
    """Devices that one process makes its runs on.

    Args:
        platform: ``cpu``, ``gpu`` or ``tpu``.
        count: how many.
        memory: bytes of each that JAX may use, 0 where it does not say.
        kind: their model, for people.
    """

    platform: str
    count: int = 1
    memory: int = 0
    kind: str = field(default="", compare=False)

    @property
    def on_cpu(self) -> bool:
        """Whether runs are made on processors, for which alone some things are chosen."""
        return self.platform == "cpu"


_elsewhere: list[Devices] = []  # what the innermost :func:`elsewhere` was told; not a context variable: threads see it, too


def own_devices() -> Devices:
    """What JAX finds in this process, which opens the devices."""
    local = jax.local_devices()
    limits = [(device.memory_stats() or {}).get("bytes_limit", 0) for device in local]
    return Devices(jax.default_backend(), len(local), min(limits), str(getattr(local[0], "device_kind", "")))


def of_workers(pool: cf.Executor) -> Devices:
    """What JAX finds in a worker of an executor: all are taken to have the same. It opens that worker's devices, and none here."""
    try:
        where: Devices = pool.submit(own_devices).result()
    except cf.CancelledError:  # nothing is cancelled here: the executor has lost it
        raise cf.BrokenExecutor("the executor has cancelled a question") from None
    return where


def devices() -> Devices:
    """The devices that plans are made for."""
    return _elsewhere[-1] if _elsewhere else own_devices()


@contextlib.contextmanager
def elsewhere(others: Devices) -> Iterator[None]:
    """Within this block plans are made for the devices of other processes."""
    _elsewhere.append(others)
    try:
        yield
    finally:
        _elsewhere.pop()


def budget(where: Devices) -> int:
    """Bytes that one chunk may need on all devices of a process together."""
    return CPU_BUDGET if where.on_cpu else where.count * (int(SHARE * where.memory) or CPU_BUDGET)
