"""Descriptions of what is run: their identities follow all that can change a run's bits, and nothing else."""

import dataclasses
import json
import os
import pickle
import subprocess
import sys
from importlib import metadata

import jax
import pytest

from jaxdyn.engine.base.devices import Devices
from jaxdyn.engine.base.reference import ref_to
from jaxdyn.engine.claims.setting import split
from jaxdyn.engine.programs import chunk as module
from jaxdyn.engine.programs.chunk import Chunk, Program


@pytest.fixture(scope="module")
def program(toys):
    return Program(ref_to(toys.decay), ref_to(toys.Toy), split(toys.Toy())[0], "vmap")


@pytest.fixture
def chunk(program):
    return Chunk(program, ((1.0, 0.01), (2.0, 0.01)), (0, 1, 5), "there", "an id")


def test_a_program_is_told_from_every_other(program, toys, monkeypatch):
    others = [
        dataclasses.replace(program, fingerprint="another"),
        dataclasses.replace(program, executor="map"),
        dataclasses.replace(program, compiler="light"),
    ]
    found = [p.identity() for p in (program, *others)]
    monkeypatch.setattr(module, "versions", lambda: {"jax": "another"})
    found.append(program.identity())
    monkeypatch.undo()
    monkeypatch.setattr(module, "devices", lambda: Devices("cpu", 7))
    found.append(program.identity())
    monkeypatch.setattr(module, "devices", lambda: Devices("cpu", 7, instructions="x86_64 avx512", threads=4))
    found.append(program.identity())
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--another")
    found.append(program.identity())
    monkeypatch.setattr(module, "runner", lambda: ["other code"])
    found.append(program.identity())
    assert len(set(found)) == len(found)
    monkeypatch.undo()
    assert dataclasses.replace(program).identity() == found[0]


def test_a_chunk_is_addressed_by_its_content_wherever_it_is_kept(chunk):
    others = [
        dataclasses.replace(chunk, cells=chunk.cells[::-1]),
        dataclasses.replace(chunk, cells=((1.0, 0.01), (2.0, 0.01 + 1e-17 * 2))),
        dataclasses.replace(chunk, seeds=(0, 1, 6)),
        dataclasses.replace(chunk, program_id="another id"),
    ]
    assert len({c.identity() for c in (chunk, *others)}) == 5
    assert dataclasses.replace(chunk, store="elsewhere").identity() == chunk.identity()


def test_a_chunk_travels(chunk):
    there = pickle.loads(pickle.dumps(chunk))
    assert there == chunk and there.identity() == chunk.identity() and hash(there) == hash(chunk)
    assert there.runs == len([(cell, seed) for cell in chunk.cells for seed in chunk.seeds]) == 6


def test_versions_are_those_that_are_installed():
    assert all(metadata.version(name) == number for name, number in module.versions().items())
    assert {"jax", "jaxlib", "scipy"} <= set(module.versions())


@pytest.mark.parametrize(
    ("run_seconds", "most", "shapes"),
    [
        (0.1, 100, {(2, 6)}),  # twelve more runs of 0.1 s instead of half of 2.5 s
        (0.2, 100, {(2, 3), (1, 6)}),  # of 0.2 s they cost more
        (0.1, 11, {(2, 3), (1, 6)}),  # twelve runs do not fit into the memory
    ],
)
def test_chunks_share_a_compiled_shape_where_that_pays(chunk, run_seconds, most, shapes):
    chunks = [chunk, dataclasses.replace(chunk, cells=chunk.cells[:1], seeds=tuple(range(6)))]
    found = module.in_one_room(chunks, 2.5, run_seconds, most)
    assert {c.shape for c in found} == shapes
    assert [(c.cells, c.seeds, c.identity()) for c in found] == [(c.cells, c.seeds, c.identity()) for c in chunks]


def test_usual_options_of_compilers_are_those_of_jax_and_others_are_told_apart(program):
    assert len(module.flags()) == 3
    usual = program.identity()
    before = jax.config.values["jax_optimization_level"]
    jax.config.update("jax_optimization_level", "O1")
    try:
        assert program.identity() != usual
    finally:
        jax.config.update("jax_optimization_level", before)
    assert program.identity() == usual


SWITCHES = "import json, sys; from jaxdyn.engine.programs.chunk import switches; json.dump(switches(), sys.stdout)"


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("JAX_HIGH_DYNAMIC_RANGE_GUMBEL", "1", True),
        ("JAX_SOFTMAX_CUSTOM_JVP", "1", True),
        ("JAX_THREEFRY_PARTITIONABLE", "0", True),
        ("EQX_ON_ERROR", "raise", True),
        ("JAX_LOG_COMPILES", "1", False),
        ("JAX_COMPILATION_CACHE_DIR", "there", False),
        ("JAX_PLATFORMS", "cpu", False),
    ],
)
def test_what_can_change_a_programs_text_is_a_switch(variable, value, told):
    environment = {name: v for name, v in os.environ.items() if not name.startswith(("JAX_", "EQX_"))}

    def switches(**more):
        command = [sys.executable, "-c", SWITCHES]
        return json.loads(subprocess.run(command, env=environment | more, capture_output=True, check=True).stdout)

    assert (switches() != switches(**{variable: value})) == told


XLA = """
import os, sys
if sys.argv[1] == "late":
    import jax
    jax.numpy.ones(2).block_until_ready()
    os.environ["XLA_FLAGS"] = sys.argv[2]
from jaxdyn.engine.programs import chunk
print(chunk.flags()[0])
"""


def xla_options(when, flags, start=""):
    env = os.environ | {"XLA_FLAGS": start}
    return subprocess.run(
        [sys.executable, "-c", XLA, when, flags], env=env, capture_output=True, encoding="utf-8", check=True
    ).stdout


def test_options_of_xla_are_those_that_it_has_read(tmp_path):
    """XLA reads its variable once, and takes a value without a dash for a file."""
    fast, file = "--xla_cpu_enable_fast_math=true", tmp_path / "flags.txt"
    file.write_text(fast, encoding="utf-8")
    given = xla_options("at once", "", fast)
    assert given == xla_options("at once", "", str(file)) != xla_options("at once", "") == "XLA_FLAGS=\n"
    file.write_text("--xla_cpu_enable_fast_math=false", encoding="utf-8")
    strict = xla_options("at once", "", str(file))
    late = xla_options("late", fast)
    assert strict != given and late == strict, "set when XLA had read its options"
    assert xla_options("late", "", fast) == given, "taken away when XLA had read them"


def test_a_variable_that_changed_after_the_import_is_told_apart(program, monkeypatch):
    usual = program.identity()
    monkeypatch.setenv("OPENBLAS_CORETYPE", "HASWELL")
    assert program.identity() != usual
    monkeypatch.setitem(module.AT_IMPORT, "OPENBLAS_CORETYPE", "HASWELL")
    before = program.identity()
    monkeypatch.setenv("OPENBLAS_CORETYPE", "")
    assert len({usual, before, program.identity()}) == 3
