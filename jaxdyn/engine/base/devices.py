"""The devices for which plans are made: those of this process, or those of its workers.

A process that only distributes work opens no card: a worker reports its devices (:func:`of_workers`), and plans are made for those
(:func:`elsewhere`).
"""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import dataclasses
import functools
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax

from jaxdyn.errors import UsageError, shown

__all__ = ["CPU_BUDGET", "Devices", "budget", "check_options", "devices", "elsewhere", "of_workers", "own_devices"]

CPU_BUDGET = 2 * 2**30  # bytes of working memory for one chunk on CPU: fixed, so that chunk shapes do not depend on free memory
SHARE = 0.5  # share of a card's memory for one chunk: XLA's own allocations and unforeseen values need room, too

DISALLOWED = "disallow", "disallow_explicit"
GUARDS = "transfer_guard", "transfer_guard_host_to_device", "transfer_guard_device_to_host", "transfer_guard_device_to_device"
DIVERGES = "a run that diverges is a result"
OPTIONS: dict[str, tuple[tuple[Any, ...], str]] = {  # of JAX: values under which trials fail that are in order, and why
    **{f"jax_{name}": (DISALLOWED, "settings go to the device, and results come back") for name in GUARDS},
    **{f"jax_error_checking_behavior_{name}": (("raise",), DIVERGES) for name in ("nan", "divide", "oob")},
    **{f"jax_debug_{name}": ((True,), DIVERGES) for name in ("nans", "infs")},
    "jax_disable_jit": ((True,), "trials are compiled"),
    "jax_no_tracing": ((True,), "trials are traced"),
    "jax_no_execution": ((True,), "programs are run"),
    "jax_numpy_dtype_promotion": (("strict",), "trials mix numbers of several types"),
    "jax_numpy_rank_promotion": (("raise",), "trials broadcast arrays"),
}
MODEL = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU part")  # lines of Linux's /proc/cpuinfo that name a processor
ARITHMETIC = ("adx", "amx", "asimd", "avx", "bf16", "bmi", "f16c", "fma", "fphp", "pclmul", "sse", "ssse", "sve")


@dataclass(frozen=True)
class Devices:
    """The devices of one process.

    Args:
        platform: ``cpu``, ``gpu`` or ``tpu``.
        count: number of devices.
        memory: bytes that JAX may use on each, 0 if unknown.
        kind: name of their model.
        instructions: :func:`instruction_set` of a CPU; empty on other platforms.
        threads: number of threads among which XLA divides an operation on CPU; 0 on other platforms.
    """

    platform: str
    count: int = 1
    memory: int = 0
    kind: str = field(default="", compare=False)
    instructions: str = field(default="", compare=False)
    threads: int = field(default=0, compare=False)

    @property
    def bits(self) -> tuple[str | int, ...]:
        """The facts that a run's bits depend on; threads, because they share the terms of a long sum."""
        return self.platform, self.count, self.kind, self.instructions, self.threads

    @property
    def on_cpu(self) -> bool:
        """Whether runs are made on the CPU."""
        return self.platform == "cpu"


_elsewhere: list[Devices] = []  # devices of the active :func:`elsewhere` blocks; not a context variable, since threads need it, too


def check_options() -> None:
    """Refuse options of JAX, set by variables or by ``jax.config``, for which a trial would be blamed.

    Raises:
        UsageError: an option has such a value.
    """
    for name, (values, why) in OPTIONS.items():
        value = getattr(jax.config, name, None)
        if value in values:
            raise UsageError(f"{name.upper()}={value} is not allowed: {why}; unset it, and leave jax.config.{name} as it is")
    if offset := getattr(jax.config, "jax_random_seed_offset", 0):
        raise UsageError(f"JAX_RANDOM_SEED_OFFSET={offset} is not allowed: runs would not have the random numbers of their seeds")


def own_devices() -> Devices:
    """The devices that JAX finds in this process; opens them."""
    local = jax.local_devices()
    limits = [(device.memory_stats() or {}).get("bytes_limit", 0) for device in local]
    where = Devices(jax.default_backend(), len(local), min(limits), str(getattr(local[0], "device_kind", "")))
    return dataclasses.replace(where, instructions=instruction_set(), threads=xla_threads()) if where.on_cpu else where


@functools.cache
def instruction_set() -> str:
    """The model of this machine's processor and its arithmetic instructions, on which compiled code depends."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    found = [facts[name] for name in MODEL if name in facts]
    names = facts.get("flags", facts.get("Features", "")).split()
    return " ".join([platform.machine(), *found, *sorted(name for name in names if name.startswith(ARITHMETIC))])


def xla_threads(processes: int = 1) -> int:
    """Number of threads among which XLA divides an operation, in each of ``processes`` that share this machine's processor."""
    given = os.environ.get("PJRT_NPROC")
    if given and not (given.isascii() and given.isdecimal() and int(given)):
        raise UsageError(f"PJRT_NPROC={shown(given)} is not allowed: it is a number of threads")
    return int(given or max(1, (os.cpu_count() or 1) // processes))


def of_workers(pool: cf.Executor) -> Devices:
    """The devices that JAX finds in one worker of an executor (all workers are assumed equal); opens them there, none here."""
    try:
        where: Devices = pool.submit(own_devices).result()
    except cf.CancelledError:  # jaxdyn cancels nothing: the executor has lost the call
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
