"""Programs compiled ahead of time for accelerators that are not here, by their own compilers: whether, how long, how much memory.

The plugins of the extras ``cuda13`` and ``tpu`` bring the compilers; no device is opened. Each program is that of the list of runs
that all claims together ask for at quick scale. It is compiled in a process of its own: a compiler may abort, or not end.
"""

from __future__ import annotations

import datetime
import functools
import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import jax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

from jaxdyn.engine import direct, impossible, registry, timings
from jaxdyn.engine.chunk import Chunk, Program
from jaxdyn.engine.devices import Devices, elsewhere
from jaxdyn.engine.planning import plan
from jaxdyn.engine.program import ACCELERATED, EXHAUSTED, of_list
from jaxdyn.engine.store import atomic_write
from jaxdyn.engine.tracing import subjaxprs
from jaxdyn.engine.verify import make_tasks
from jaxdyn.errors import UsageError
from jaxdyn.report.platforms import LIMIT, SLOW

__all__ = [
    "RESULTS",
    "TARGETS",
    "Target",
    "compile_list",
    "compiled",
    "lists",
    "read",
    "stamp",
    "start",
    "topology",
    "work",
    "write",
]

RESULTS = Path("benchmarks", "results", "ahead.json")  # in a checkout
STARTING = 60.0  # more for the first of a process, which imports everything


@dataclass(frozen=True)
class Target:
    """An accelerator: its name, what plans are made for, and how its compiler is asked for."""

    name: str
    devices: Devices
    extra: str  # of jaxdyn, that brings the compiler
    package: str  # with the compiler
    chip: str = ""  # of a TPU


TARGETS = {
    "cuda": Target("H100", Devices("gpu", 1, 80 * 2**30), "cuda13", "jax-cuda13-pjrt"),
    "tpu": Target("TPU v5e", Devices("tpu", 1, 16 * 2**30), "tpu", "libtpu", "v5e:2x2"),
}


@functools.cache
def topology(platform: str) -> Any:
    """The devices of an accelerator that is not here.

    Raises:
        UsageError: its compiler is not installed.
    """
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")  # nobody is asked which TPU this is
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")  # no process has one to itself
    try:
        if platform == "tpu":
            return topologies.get_topology_desc(platform="tpu", topology_name=TARGETS["tpu"].chip)
        config = Path(__file__).with_name("h100.txtpb").read_text()
        return topologies.get_topology_desc(platform=platform, target_config=config, topology="1x1x1")
    except (RuntimeError, ImportError, ValueError) as error:
        install = f"pip install 'jaxdyn[{TARGETS[platform].extra}]'"
        raise UsageError(f"the compiler for {platform} is not there ({str(error).splitlines()[0]}): {install}") from None


def lists(platform: str, patterns: Sequence[str] = ()) -> list[Chunk]:
    """What a machine with this accelerator compiles for claims that can be asked here, the cheapest first; all without patterns."""
    with elsewhere(TARGETS[platform].devices):
        jobs = plan([request for task in make_tasks(registry.select(patterns)) for request in task.requests], store=None)
    return [job.chunks[0] for job in sorted(jobs, key=lambda job: timings.reference_times(job.program)[0])]


def compile_list(platform: str, program: Program, runs: int) -> dict[str, Any]:
    """Compile a program for so many runs, for all at once or, as the engine does, half as many for as long as they do not fit."""
    group = runs
    while True:
        try:
            found = compile_group(platform, program, runs, group)
            return found if group == runs else found | {"at_once": group}
        except jax.errors.JaxRuntimeError as error:
            if EXHAUSTED not in str(error) or group == 1:
                raise
            group //= 2


def compile_group(platform: str, program: Program, runs: int, group: int) -> dict[str, Any]:
    """Compile a program for so many at once: seconds, and bytes that it needs besides its code; or why not."""
    sharding = SingleDeviceSharding(topology(platform).devices[0])
    start = time.perf_counter()
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        block, *shapes = of_list(program, runs, group)
        placed = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), shapes)
        jaxpr = jax.jit(block).trace(*placed)
        if (why := impossible.lacking(subjaxprs(jaxpr.jaxpr.jaxpr), TARGETS[platform].devices.platform)) is not None:
            return {"failed": why}
        lowered = jaxpr.lower()
        traced = time.perf_counter()
        options = ACCELERATED.get(TARGETS[platform].devices.platform)
        used: Any = lowered.compile(compiler_options=options).memory_analysis()
    seconds = {"trace_seconds": round(traced - start, 2), "compile_seconds": round(time.perf_counter() - traced, 2)}
    return seconds | {"bytes": used.temp_size_in_bytes + used.argument_size_in_bytes + used.output_size_in_bytes}


def stamp(platform: str, chunk: Chunk) -> str:
    """What was compiled: changes with the sources of the trial, the number of runs and the compiler's options."""
    options = ACCELERATED.get(TARGETS[platform].devices.platform, {})
    return " ".join([chunk.program.fingerprint, str(chunk.shape[1]), *map(str, options.values())])


def read(file: Path) -> dict[str, dict[str, Any]]:
    """The results so far, by platform and program; for each platform ``about`` says when they were made, and by what."""
    return json.loads(file.read_text()) if file.is_file() else {}


def write(platform: str, seconds: float, file: Path = RESULTS) -> tuple[int, int]:
    """Compile what is not in the file of results, then what has changed since, for so long.

    Returns:
        How many programs the file has as they are now, and of how many.
    """
    topology(platform)
    chunks, end = {timings.program_name(chunk.program): chunk for chunk in lists(platform)}, time.monotonic() + seconds
    kept = {name: result for name, result in read(file).get(platform, {}).items() if name in chunks}
    changed = [name for name, result in kept.items() if result["stamp"] != stamp(platform, chunks[name])]
    todo = [*(name for name in chunks if name not in kept), *changed]
    about = f"JAX {version('jax')}, {TARGETS[platform].package} {version(TARGETS[platform].package)}, {datetime.date.today()}"
    for chunk, result in compiled(platform, [chunks[name] for name in todo], end):
        runs, each = chunk.shape[1], direct.facts_of([chunk.program])[chunk.program]["bytes"]
        kept[timings.program_name(chunk.program)] = result | {
            "runs": runs,
            "estimate": runs * each,
            "stamp": stamp(platform, chunk),
        }
        whole = read(file)
        whole |= {"about": whole.get("about", {}) | {platform: about}, platform: kept}
        atomic_write(file, json.dumps(whole, indent=1) + "\n")
    told = (SLOW, impossible.END)  # what takes long, and what is told by the program's operations, needs no file
    failed = {name: str(r["failed"]) for name, r in kept.items() if "failed" in r and not any(sign in r["failed"] for sign in told)}
    impossible.write(TARGETS[platform].devices.platform, failed)
    return sum(result["stamp"] == stamp(platform, chunks[name]) for name, result in kept.items()), len(chunks)


def compiled(platform: str, chunks: list[Chunk], end: float) -> Iterator[tuple[Chunk, dict[str, Any]]]:
    """Compile chunk after chunk in another process, which is replaced where it aborts or takes longer than ``LIMIT``.

    Raises:
        UsageError: that process cannot use the compiler.
    """
    child: tuple[Any, Connection] | None = None
    for chunk in chunks:
        if time.monotonic() > end:
            break
        fresh = child is None
        process, pipe = child = child or start(platform)
        pipe.send((chunk.program, chunk.shape[1]))
        try:
            answered = pipe.poll(min(LIMIT + STARTING * fresh, max(0.0, end - time.monotonic())))
            result = pipe.recv() if answered else None
        except EOFError:
            process.join()
            result, child = {"failed": f"the compiler ended its process ({process.exitcode})"}, None
        if isinstance(result, UsageError):
            raise result
        if result is not None and result.get("compile_seconds", 0.0) > LIMIT:  # within what the start of a process is given
            result = {"failed": f"{SLOW} {LIMIT:g} s"}
        if result is None:
            process.kill()
            child = None
            if time.monotonic() > end:
                break
            result = {"failed": f"{SLOW} {LIMIT:g} s"}
        yield chunk, result
    if child is not None:
        child[0].kill()


def start(platform: str) -> tuple[Any, Connection]:
    """Another process that compiles for a platform, and the pipe to it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(platform, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def work(platform: str, pipe: Connection) -> None:
    """In the other process: compile what comes in; where there is no compiler, say so and end."""
    try:
        topology(platform)
    except UsageError as error:
        pipe.send(error)
        return
    while True:
        program, runs = pipe.recv()
        try:
            pipe.send(compile_list(platform, program, runs))
        except Exception as error:  # whatever a compiler raises is what we want to know
            pipe.send({"failed": (str(error).strip().splitlines() or [type(error).__name__])[0][:200]})
        jax.clear_caches()
