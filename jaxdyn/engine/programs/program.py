"""Running a chunk: one compiled function for many runs that share their static fields.

Everything is traced and run inside ``jax.enable_x64(True)``: precision belongs to the setting.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from threadpoolctl import ThreadpoolController

from jaxdyn.engine.claims.observables import Observables, refuse_clashes
from jaxdyn.engine.claims.resource import shapes, shared_by
from jaxdyn.engine.programs import sequential
from jaxdyn.engine.programs.chunk import Chunk, Program
from jaxdyn.engine.programs.impossible import lacking, why_impossible
from jaxdyn.engine.programs.tracing import subjaxprs, swept_arrays, swept_shapes, traced
from jaxdyn.engine.storage.arrays import Arrays
from jaxdyn.engine.storage.cache import cache_dir
from jaxdyn.engine.storage.seeds import seed_array
from jaxdyn.engine.storage.shard import write_shard
from jaxdyn.errors import Absent, UsageError
from jaxdyn.status import DIVERGED, FAILED, NAMES, OK

Numbers: TypeAlias = "np.ndarray[Any, Any]"

MAP_RUNS = 256  # most runs in a chunk under ``map``: larger ones are no faster, and a killed sweep loses a chunk

EXHAUSTED = "RESOURCE_EXHAUSTED"  # in XLA's message when memory runs out, while compiling or running
GROUPS: dict[Program, int] = {}  # runs at once that fit into the memory of this process's devices, where more did not

# On CPU, reductions do not use XLA's library of kernels (openxla/xla#21461): its maximum and minimum ignore NaN.
NAN_KEPT: dict[str, Any] = {
    "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_DOT,LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
}
# One LLVM module per program: the workers fill the cores, and several modules cost 5% more (light: 15-20%).
QUICK: dict[str, Any] = NAN_KEPT | {"xla_backend_optimization_level": 1, "xla_cpu_parallel_codegen_split_count": 1}
COMPILERS: dict[str, dict[str, Any]] = {
    "full": NAN_KEPT,
    "quick": QUICK,  # compiles 20-65% faster, runs as fast
    "light": QUICK | {"xla_cpu_use_fusion_emitters": False},  # another 20-40% faster to compile, may run slower
}
# On GPUs Triton's kernels take most of the compilation. A softmax pattern saves one kernel at each step and takes ten times as
# long to compile as the rest of a small program (49 s and 3 s for an H100); so does a reduction over a large tile (more than 180 s
# and 24 s). Matrix products are tried in many ways on the card, or do not compile at all (f32[700,200], JAX 0.10); cuBLAS has them.
ACCELERATED: dict[str, dict[str, Any]] = {
    "gpu": {
        "xla_disable_hlo_passes": "triton-softmax-rewriter,fusion-block-level-rewriter",
        "xla_gpu_enable_triton_gemm": False,
    },
}

__all__ = [
    "ACCELERATED",
    "COMPILERS",
    "EXHAUSTED",
    "GROUPS",
    "MAP_RUNS",
    "check_device",
    "compiled_list",
    "compiled_map",
    "compiled_rectangle",
    "halved",
    "of_list",
    "prepare",
    "run_chunk",
    "use_compilation_cache",
]


def check_device() -> None:
    """Refuse to plan for a device that JAX cannot open.

    Raises:
        UsageError: JAX finds no device of the kind that ``JAX_PLATFORMS`` asks for.
    """
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # the latter for a plugin that is not installed
        asked, reason = os.environ.get("JAX_PLATFORMS", ""), (str(error).splitlines() or ["not installed"])[0]
        if not asked:
            raise UsageError(f"JAX cannot open its device ({reason}); JAX_PLATFORMS=cpu does without it") from None
        raise UsageError(
            f"JAX_PLATFORMS={asked} is not allowed: JAX finds no such device ({reason}); cpu is always there"
        ) from None


def use_compilation_cache() -> None:
    """Turn on JAX's persistent compilation cache in the user's cache folder, unless one is configured already."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_dir() / "xla"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _sharded(block: Callable[..., Observables], in_specs: Any, out_specs: Any) -> Callable[..., Observables]:
    """The block, distributed over all devices; unchanged if there is only one."""
    devices = jax.local_device_count()
    if devices == 1:
        return block
    mesh = jax.make_mesh((devices,), ("runs",), axis_types=(AxisType.Auto,), devices=jax.local_devices())
    specs: dict[str, Any] = {"in_specs": in_specs, "out_specs": out_specs, "check_vma": False}
    sharded: Callable[..., Observables] = jax.shard_map(_alone(block), mesh=mesh, **specs)
    return sharded


def _alone(block: Callable[..., Observables]) -> Callable[..., Observables]:
    """The block, traced without a mesh: to implicit ODE solvers (lineax) values with and without one differ in kind."""

    def of_device(*args: Any) -> Any:
        alone = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), args)
        with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ())):
            closed, found = jax.make_jaxpr(block, return_shape=True)(*alone)
        return jax.tree.unflatten(jax.tree.structure(found), jaxpr_as_fun(closed)(*jax.tree.leaves(args)))

    return of_device


def of_list(program: Program, runs: int, group: int = 0) -> tuple[Callable[[Any, Any, Any], Observables], Any, Any, Any]:
    """The function of a list of runs, which accelerators compile, and the shapes of its arguments for this number of runs."""
    return _flat_block(program, group), swept_shapes(program, runs), jax.ShapeDtypeStruct((runs,), jnp.uint32), shapes(program)


def _flat_block(program: Program, group: int) -> Callable[[Any, Any, Any], Observables]:
    """The chunk's function of (swept arrays, seeds, shared) under ``flat``: one ``vmap`` over its list of runs."""
    one = traced(program)

    def block(swept: Any, seeds: Any, shared: Any) -> Any:
        return _in_groups(jax.vmap(lambda run: one(run[0], run[1], shared)), (swept, seeds), group or len(seeds))

    return _sharded(block, (P("runs"), P("runs"), P()), P("runs"))


def _block(program: Program, axis: str, group: int) -> Callable[[Any, Any, Any], Observables]:
    """The chunk's function of (swept arrays, seeds, shared) under ``vmap``, the outer one over seeds and the inner one over cells.

    More than ``group`` runs are split into groups, run in turn: some seeds with all cells or, if need be, some cells of one seed.
    """
    one = traced(program)

    def block(swept: Any, seeds: Any, shared: Any) -> Any:
        cells, most = len(swept[1]), group or len(swept[1]) * len(seeds)

        def of_seed(seed: Any) -> Any:
            return _in_groups(jax.vmap(lambda cell: one(cell[0], seed, shared)), swept, most)

        return _in_groups(jax.vmap(of_seed), seeds, most // cells) if cells <= most else jax.lax.map(of_seed, seeds)

    own, out = ((P(), P("runs")), P("runs")) if axis == "seeds" else ((P("runs"), P()), P(None, "runs"))
    return _sharded(block, (*own, P()), out)


def _in_groups(run: Callable[[Any], Any], items: Any, most: int) -> Any:
    """``run(items)`` in groups of at most ``most`` along the leading axis; the last group is padded with its last item."""
    size = len(jax.tree.leaves(items)[0])
    count = -(-size // most)
    if count == 1:
        return run(items)
    each = -(-size // count)
    filled = jax.tree.map(lambda x: jnp.pad(x, [(0, count * each - size)] + [(0, 0)] * (x.ndim - 1), mode="edge"), items)
    done = jax.lax.map(run, jax.tree.map(lambda x: x.reshape(count, each, *x.shape[1:]), filled))
    return jax.tree.map(lambda y: y.reshape(count * each, *y.shape[2:])[:size], done)


def compile_block(program: Program, block: Callable[..., Observables], *args: Any) -> Any:
    """The block, compiled for arguments of these shapes with the program's options.

    Raises:
        Absent: it uses operations that this process's device lacks.
    """
    staged = jax.jit(block).trace(*args)
    refuse(program, lacking(subjaxprs(staged.jaxpr.jaxpr), jax.default_backend()))
    return staged.lower().compile(compiler_options=known_options(program.compiler))


def refuse(program: Program, why: str | None) -> None:
    """Refuse a program if ``why`` gives a reason why it does not compile on this device."""
    if why is not None:
        narrower = ", or --set dtype=float32 where the claim's bounds allow it" if ("dtype", "float64") in program.static else ""
        raise Absent(f"{program.trial.title} {why}: a CPU or another accelerator is needed{narrower}")


@functools.lru_cache(maxsize=64)
def compiled_rectangle(program: Program, n_cells: int, n_seeds: int, group: int) -> tuple[Any, int, int]:
    """The compiled program for chunks of this shape under ``vmap``, and its numbers of cells and seeds, padded for all devices."""
    axis = "seeds" if n_seeds >= n_cells else "cells"
    devices = jax.local_device_count()
    pad = (-(n_seeds if axis == "seeds" else n_cells)) % devices
    n_cells, n_seeds = n_cells + (pad if axis == "cells" else 0), n_seeds + (pad if axis == "seeds" else 0)
    cells = swept_shapes(program, n_cells), jax.ShapeDtypeStruct((n_cells,), jnp.uint32)
    seeds = jax.ShapeDtypeStruct((n_seeds,), jnp.uint32)
    return compile_block(program, _block(program, axis, group), cells, seeds, shapes(program)), n_cells, n_seeds


@functools.lru_cache(maxsize=64)
def compiled_list(program: Program, runs: int, group: int) -> tuple[Any, int]:
    """The compiled program for lists of this many runs, and their number, padded to fill the devices."""
    runs += -runs % jax.local_device_count()
    return compile_block(program, *of_list(program, runs, group)), runs


@functools.lru_cache(maxsize=64)
def compiled_map(program: Program, room: int) -> Any:
    """The compiled program for all chunks under ``map`` of at most ``room`` runs."""
    devices, one = jax.local_device_count(), traced(program)
    block = _sharded(sequential.make_block(one.__call__, one.results, room), (P("runs"), P("runs"), P("runs"), P()), P("runs"))
    seeds, counts = jax.ShapeDtypeStruct((devices, room), jnp.uint32), jax.ShapeDtypeStruct((devices, 2), jnp.int32)
    return compile_block(program, block, swept_shapes(program, devices, room), seeds, counts, shapes(program))


@functools.cache
def known_options(compiler: str) -> Any:
    """XLA's options for a way of compiling on this platform, without those that this version of JAX does not have."""
    options, platform = {}, jax.default_backend()
    for name, value in (COMPILERS[compiler] if platform == "cpu" else ACCELERATED.get(platform, {})).items():
        try:
            jax.jit(operator.neg).lower(0.0).compile(compiler_options={name: value})
            options[name] = value
        except jax.errors.JaxRuntimeError as error:
            if "INVALID_ARGUMENT" not in str(error):  # other errors, such as lack of memory, say nothing about the option
                raise
    return options


def _last_repeated(array: Numbers, size: int) -> Numbers:
    return np.concatenate([array, np.repeat(array[-1:], size - len(array), axis=0)])


def _to_host(observed: Observables, n_seeds: int, n_cells: int) -> Arrays:
    """NumPy arrays with their names; a run with a non-finite prediction or measurement is marked as diverged.

    A status that is not one of the codes counts as a failure of the solver; a traced status can only be checked here.
    """
    arrays, dims = {}, {}
    status = np.array(observed.status)[:n_seeds, :n_cells]
    status = np.where((status >= 0) & (status < len(NAMES)), status, FAILED)
    for prefix in ("predicted", "measured", "recorded", "assumed"):
        for name, item in getattr(observed, prefix).items():
            label = name if prefix == "recorded" else f"{prefix}_{name}"
            arrays[label], dims[label] = np.asarray(item.value)[:n_seeds, :n_cells], item.dims
            if prefix in ("predicted", "measured") and np.issubdtype(arrays[label].dtype, np.inexact):
                finite = np.isfinite(arrays[label]).reshape(n_seeds, n_cells, -1).all(-1)
                status = np.where((status == OK) & ~finite, DIVERGED, status)
    return Arrays({**arrays, "status": status.astype(np.int32)}, {**dims, "status": ()}, dict(observed.coords))


def _refuse_clashes(compiled: Any, chunk: Chunk) -> None:
    """Refuse, before the run, observables that have the name of an axis of the grid."""
    refuse_clashes(jax.tree.unflatten(compiled.out_tree, [None] * compiled.out_tree.num_leaves), chunk.axes)


def _ready_vmap(chunk: Chunk) -> Callable[[], Observables]:
    """Compile for a chunk under ``vmap``; returns the function that runs it."""
    compiled, n_cells, n_seeds = compiled_rectangle(chunk.program, *chunk.shape, chunk.group)
    _refuse_clashes(compiled, chunk)
    swept = {k: _last_repeated(v, n_cells) for k, v in swept_arrays(chunk.program, chunk.cells).items()}
    seeds = _last_repeated(seed_array(chunk.seeds), n_seeds)
    return lambda: jax.device_get(compiled((swept, np.zeros(n_cells, np.uint32)), seeds, shared_by(chunk.program)))


def _ready_flat(chunk: Chunk) -> Callable[[], Observables]:
    """Compile for a chunk under ``flat``; returns the function that runs it, whose results have a second axis of length 1."""
    compiled, runs = compiled_list(chunk.program, chunk.shape[1], chunk.group)
    _refuse_clashes(compiled, chunk)
    swept = {k: _last_repeated(v, runs) for k, v in swept_arrays(chunk.program, chunk.cells).items()}
    seeds = _last_repeated(seed_array(chunk.seeds), runs)

    def run() -> Observables:
        found: Observables = jax.device_get(compiled(swept, seeds, shared_by(chunk.program)))
        second: Observables = jax.tree.map(lambda x: x[:, None], found)
        return second

    return run


def _ready_map(chunk: Chunk) -> Callable[[], Observables]:
    """Compile for a chunk under ``map``; returns the function that runs it."""
    room = max(chunk.runs, sequential.room_for(traced(chunk.program).results, MAP_RUNS))
    compiled, seeds = compiled_map(chunk.program, room), seed_array(chunk.seeds)
    _refuse_clashes(compiled, chunk)
    swept = swept_arrays(chunk.program, chunk.cells)
    share = sequential.distribute(swept, seeds, len(chunk.cells), jax.local_device_count(), room)
    return lambda: sequential.gather(jax.device_get(compiled(*share, shared_by(chunk.program))), share[-1], len(seeds))


def run_chunk(chunk: Chunk) -> Arrays:
    """Run one chunk; with a store, write its shard, whose path is then among the facts.

    When memory runs out, the number of runs at once is halved until they fit.

    Raises:
        Absent: one run needs more memory than there is, or as for :func:`prepare`.
    """
    use_compilation_cache()
    while (observed := _run(chunk)) is None:
        GROUPS[chunk.program] = halved(chunk, _group(chunk))
    found, facts = observed
    result = dataclasses.replace(_to_host(found, len(chunk.seeds), 1 if chunk.zipped else len(chunk.cells)), zipped=chunk.zipped)
    if chunk.store is None:
        return dataclasses.replace(result, facts=facts)
    about = {**facts, "program": asdict(chunk.program), "room": chunk.room, "group": chunk.group}
    stored = dataclasses.replace(result, facts=about)
    shard = write_shard(chunk.store, chunk.program_id, chunk.identity(), chunk.cells, chunk.seeds, stored)
    return dataclasses.replace(result, facts={**facts, "shard": str(shard)})


def _run(chunk: Chunk) -> tuple[Observables, dict[str, Any]] | None:
    """The observables of a chunk's runs, and what they cost; None when memory runs out.

    Every matrix factorisation uses one thread: most matrices are small, and threads would spend longer waiting for one another.
    The BLAS libraries are looked up for each chunk, since JAX loads LAPACK with the first program that factorises.
    """
    start, cpu_start = time.perf_counter(), time.process_time()
    try:
        with jax.enable_x64(True):
            run = prepare(chunk)
            ready = time.perf_counter()
            with ThreadpoolController().limit(limits=1, user_api="blas"):
                observed = run()
    except jax.errors.JaxRuntimeError as error:
        if EXHAUSTED not in str(error):
            raise
        return None
    facts = {"compile_seconds": ready - start, "run_seconds": time.perf_counter() - ready, "runs": chunk.runs}
    return observed, facts | {"cpu_seconds": time.process_time() - cpu_start}  # of all threads, compilation included


def _group(chunk: Chunk) -> int:
    """Number of a chunk's runs that are made at once on a device; 0: all."""
    return GROUPS.get(chunk.program, chunk.group)


def prepare(chunk: Chunk) -> Callable[[], Observables]:
    """Compile for a chunk, unless done before, for as many runs at once as fit; returns the function that runs it.

    Raises:
        Absent: the program is known not to compile for this device; its compiler is not asked.
    """
    refuse(chunk.program, why_impossible(chunk.program, jax.default_backend()))
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        ready = {"map": _ready_map, "flat": _ready_flat, "vmap": _ready_vmap}[chunk.program.executor]
        return ready(dataclasses.replace(chunk, group=_group(chunk)))


def halved(chunk: Chunk, group: int) -> int:
    """Half the number of runs at once on each device.

    Raises:
        Absent: it is one already.
    """
    cells, seeds = chunk.shape
    shared, whole = max(cells, seeds), 1 if chunk.zipped else min(cells, seeds)  # axis split among devices, and the other
    most = 1 if chunk.program.executor == "map" else -(-shared // jax.local_device_count()) * whole
    before = min(group or most, most)
    if before <= 1:
        larger = "a larger device is needed, or one that nobody else uses"
        raise Absent(f"one run of {chunk.program.trial.title} needs more memory than there is: {larger}")
    return before // 2
