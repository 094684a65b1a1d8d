"""The devices on which runs are made: those of this process, or those of its workers.

Plans depend on them. A process that only distributes work opens no card: a worker reports its devices (:func:`of_workers`), and
plans are made for those (:func:`elsewhere`).
"""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import jax

__all__ = ["CPU_BUDGET", "Devices", "budget", "devices", "elsewhere", "of_workers", "own_devices"]

CPU_BUDGET = 2 * 2**30  # bytes of working memory for one chunk on CPU: fixed, so that chunk shapes do not depend on free memory
SHARE = 0.5  # share of a card's memory for one chunk: XLA's own allocations and unforeseen values need room, too


@dataclass(frozen=True)
class Devices:
    """The devices of one process.

    Args:
        platform: ``cpu``, ``gpu`` or ``tpu``.
        count: number of devices.
        memory: bytes that JAX may use on each, 0 if unknown.
        kind: name of their model.
    """

    platform: str
    count: int = 1
    memory: int = 0
    kind: str = field(default="", compare=False)

    @property
    def on_cpu(self) -> bool:
        """Whether runs are made on the CPU."""
        return self.platform == "cpu"


_elsewhere: list[Devices] = []  # devices of the active :func:`elsewhere` blocks; not a context variable, since threads need it, too


def own_devices() -> Devices:
    """The devices that JAX finds in this process; opens them."""
    local = jax.local_devices()
    limits = [(device.memory_stats() or {}).get("bytes_limit", 0) for device in local]
    return Devices(jax.default_backend(), len(local), min(limits), str(getattr(local[0], "device_kind", "")))


def of_workers(pool: cf.Executor) -> Devices:
    """The devices that JAX finds in one worker of an executor (all workers are assumed equal); opens them there, none here."""
    try:
        where: Devices = pool.submit(own_devices).result()
    except cf.CancelledError:  # nothing is cancelled here: the executor has lost the call
        raise cf.BrokenExecutor("the executor has cancelled a call") from None
    return where


def devices() -> Devices:
    """The devices for which plans are made."""
    return _elsewhere[-1] if _elsewhere else own_devices()


@contextlib.contextmanager
def elsewhere(others: Devices) -> Iterator[None]:
    """Within this block, plans are made for the devices of other processes."""
    _elsewhere.append(others)
    try:
        yield
    finally:
        _elsewhere.pop()


def budget(where: Devices) -> int:
    """Bytes of memory for one chunk on all devices of a process together."""
    return CPU_BUDGET if where.on_cpu else where.count * (int(SHARE * where.memory) or CPU_BUDGET)
