"""Ahead-of-time compilation of all programs for accelerators that this machine lacks: success, duration and memory.

The plugins of the extras ``cuda13`` and ``tpu`` bring the compilers; no device is opened. The programs are those of all claims
at quick scale, each for all its runs. They are compiled in another process, since a compiler may abort, or not end.
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

from jaxdyn.engine.base.devices import Devices, elsewhere
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.programs import direct, impossible
from jaxdyn.engine.programs.chunk import Chunk, Program, program_name
from jaxdyn.engine.programs.program import ACCELERATED, EXHAUSTED, of_list
from jaxdyn.engine.programs.tracing import subjaxprs
from jaxdyn.engine.runs import costs as timings
from jaxdyn.engine.runs.blocks import distinct_runs
from jaxdyn.engine.runs.planning import plan
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.engine.verification import origin
from jaxdyn.engine.verification.verify import make_tasks
from jaxdyn.errors import UsageError
from jaxdyn.report.platforms import LIMIT, SLOW

__all__ = [
    "NEVER",
    "RESULTS",
    "TARGETS",
    "Target",
    "changes",
    "compile_list",
    "compiled",
    "lists",
    "made_from",
    "read",
    "stamp",
    "start",
    "topology",
    "work",
    "write",
]

RESULTS = Path("benchmarks", "results", "ahead.json")  # in a checkout
NEVER = "never compiled"
STARTING = 60.0  # additional seconds for the first program in a process, which imports everything


@dataclass(frozen=True)
class Target:
    """An accelerator: its name, the devices for which plans are made, and where its compiler comes from."""

    name: str
    devices: Devices
    extra: str  # the extra of jaxdyn that installs the compiler
    package: str  # the package that contains the compiler
    chip: str = ""  # the topology's name, for a TPU


TARGETS = {
    "cuda": Target("H100", Devices("gpu", 1, 80 * 2**30), "cuda13", "jax-cuda13-pjrt"),
    "tpu": Target("TPU v5e", Devices("tpu", 1, 16 * 2**30), "tpu", "libtpu", "v5e:2x2"),
}


@functools.cache
def topology(platform: str) -> Any:
    """The devices of an accelerator that this machine lacks, for its compiler.

    Raises:
        UsageError: its compiler is not installed.
    """
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")  # do not query the cloud's metadata for a TPU
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")  # several processes may load the compiler
    try:
        if platform == "tpu":
            return topologies.get_topology_desc(platform="tpu", topology_name=TARGETS["tpu"].chip)
        config = Path(__file__).with_name("h100.txtpb").read_text(encoding="utf-8")
        return topologies.get_topology_desc(platform=platform, target_config=config, topology="1x1x1")
    except (RuntimeError, ImportError, ValueError) as error:
        install = f"pip install 'jaxdyn[{TARGETS[platform].extra}]'"
        raise UsageError(f"the compiler for {platform} is not installed ({str(error).splitlines()[0]}): {install}") from None


def lists(platform: str, patterns: Sequence[str] = ()) -> list[Chunk]:
    """The chunks that a machine with this accelerator compiles for the selected claims (all without patterns), cheapest first."""
    with elsewhere(TARGETS[platform].devices):
        jobs = plan([request for task in make_tasks(registry.select(patterns)) for request in task.requests], store=None)
    return [job.chunks[0] for job in sorted(jobs, key=lambda job: timings.reference_times(job.program)[0])]


def compile_list(platform: str, program: Program, runs: int) -> dict[str, Any]:
    """Compile a program for all runs at once; like the engine, halve the number at once until they fit into memory."""
    group = runs
    while True:
        try:
            result = compile_group(platform, program, runs, group)
            return result if group == runs else result | {"at_once": group}
        except jax.errors.JaxRuntimeError as error:
            if EXHAUSTED not in str(error) or group == 1:
                raise
            group //= 2


def compile_group(platform: str, program: Program, runs: int, group: int) -> dict[str, Any]:
    """Compile a program for ``group`` runs at once: seconds and bytes of memory besides its code, or the reason for failure."""
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
    """Identifies what was compiled: it changes with the trial's sources, the number of runs and the compiler's options."""
    options = ACCELERATED.get(TARGETS[platform].devices.platform, {})
    return " ".join([chunk.program.fingerprint, str(chunk.shape[1]), *map(str, options.values())])


def read(file: Path) -> dict[str, dict[str, Any]]:
    """The results so far, by platform and program; ``about`` says for each platform when and with which compiler."""
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def write(platform: str, seconds: float, file: Path = RESULTS) -> tuple[int, int]:
    """Compile programs that are missing from the file of results, then those that have changed, for this many seconds.

    Returns:
        The number of programs with a current result, and the number of all programs.
    """
    # what is missing, and what has changed
    topology(platform)
    chunks, end = {program_name(chunk.program): chunk for chunk in lists(platform)}, time.monotonic() + seconds
    kept = {name: result for name, result in read(file).get(platform, {}).items() if name in chunks}
    changed = [name for name, result in kept.items() if result["stamp"] != stamp(platform, chunks[name])]
    todo = [*(name for name in chunks if name not in kept), *changed]
    about = str(read(file).get("about", {}).get(platform, ""))
    if about.startswith(f"JAX {version('jax')}, "):  # what is the same is not compiled again
        for name in kept.keys() - set(changed):
            kept[name]["made_from"] = made_from(platform, chunks[name])
        _store(file, platform, about, kept)
    about = f"JAX {version('jax')}, {TARGETS[platform].package} {version(TARGETS[platform].package)}, {datetime.date.today()}"
    # compile, and write after each program
    for chunk, result in compiled(platform, [chunks[name] for name in todo], end):
        runs, each = chunk.shape[1], direct.facts_of([chunk.program])[chunk.program]["bytes"]
        kept[program_name(chunk.program)] = result | {
            "runs": runs,
            "estimate": runs * each,
            "stamp": stamp(platform, chunk),
            "made_from": made_from(platform, chunk),
        }
        _store(file, platform, about, kept)
    # failures that ship with the package: without slow programs, and without those that are recognised by their operations
    others = (SLOW, impossible.END)
    failed = {
        name: str(r["failed"]) for name, r in kept.items() if "failed" in r and not any(sign in r["failed"] for sign in others)
    }
    impossible.write(TARGETS[platform].devices.platform, failed)
    return sum(result["stamp"] == stamp(platform, chunks[name]) for name, result in kept.items()), len(chunks)


def _store(file: Path, platform: str, about: str, results: dict[str, dict[str, Any]]) -> None:
    whole = read(file)
    whole |= {"about": whole.get("about", {}) | {platform: about}, platform: results}
    atomic_write(file, json.dumps(whole, indent=1) + "\n")


def made_from(platform: str, chunk: Chunk) -> dict[str, Any]:
    """What the result of a list of runs is made from (:mod:`jaxdyn.engine.verification.origin`)."""
    with elsewhere(TARGETS[platform].devices):
        return origin.made_from([chunk.program], str(chunk.shape[1]), "")


def changes(platform: str, file: Path = RESULTS) -> dict[str, origin.Changes]:
    """For each program of today, what has changed since it was compiled; most are known without tracing."""
    results = read(file).get(platform, {})
    with elsewhere(TARGETS[platform].devices):
        requests = [request for task in make_tasks(registry.select([])) for request in task.requests]
        counts, programs = distinct_runs(requests), dict[Any, Program]()
        for request in requests:
            programs |= request.programs
        found = {}
        for key, program in programs.items():
            name = program_name(program)
            recorded = results.get(name, {}).get("made_from")
            known = name in results
            found[name] = origin.what_changed(recorded, [program], str(counts[key]), "") if known else origin.Changes((NEVER,))
        return found


def compiled(platform: str, chunks: list[Chunk], end: float) -> Iterator[tuple[Chunk, dict[str, Any]]]:
    """Compile chunks in another process, which is replaced if it aborts or takes longer than ``LIMIT``.

    Raises:
        UsageError: that process cannot use the compiler.
    """
    child: tuple[Any, Connection] | None = None
    for chunk in chunks:
        if time.monotonic() > end:
            break
        # ask for one program, and wait
        fresh = child is None
        process, pipe = child = child or start(platform)
        pipe.send((chunk.program, chunk.shape[1]))
        try:
            answered = pipe.poll(min(LIMIT + STARTING * fresh, max(0.0, end - time.monotonic())))
            result = pipe.recv() if answered else None
        except EOFError:
            process.join()
            result, child = {"failed": f"the compiler ended its process ({process.exitcode})"}, None
        # the answer: a result, or none in time
        if isinstance(result, UsageError):
            raise result
        if result is not None and result.get("compile_seconds", 0.0) > LIMIT:  # too slow, but within the time for a start
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
    """Start another process that compiles for a platform; returns it and the pipe to it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(platform, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def work(platform: str, pipe: Connection) -> None:
    """In the other process: compile every program that comes in; without a compiler, send the error and end."""
    try:
        topology(platform)
    except UsageError as error:
        pipe.send(error)
        return
    while True:
        program, runs = pipe.recv()
        try:
            pipe.send(compile_list(platform, program, runs))
        except Exception as error:  # a compiler may raise anything; its message is the result
            pipe.send({"failed": (str(error).strip().splitlines() or [type(error).__name__])[0][:200]})
        jax.clear_caches()
