"""How programs are run: one after the other, and in chunks that suit the machine."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.engine.base.reference import ref_to
from jaxdyn.engine.claims.setting import split
from jaxdyn.engine.programs import program, sequential
from jaxdyn.engine.programs.chunk import Chunk, Program
from jaxdyn.engine.programs.direct import traced_facts
from jaxdyn.engine.programs.suiting import step_bytes
from jaxdyn.engine.programs.tracing import subjaxprs

# Runs one after another: chunks of all shapes share one program, and every run is where its cell and seed say.


def one(swept, seed, shared=()):
    return {"sum": swept["x"] + seed.astype(jnp.float32), "row": jnp.arange(3, dtype=jnp.int32) * swept["k"]}


def shapes():
    return jax.eval_shape(one, {"x": jnp.float32(0), "k": jnp.int32(0)}, jnp.uint32(0))


@pytest.mark.parametrize(("n_cells", "n_seeds"), [(1, 1), (3, 2), (2, 5), (4, 4)])
@pytest.mark.parametrize("devices", [1, 2, 3, 5])
def test_every_run_is_at_its_place(n_cells, n_seeds, devices):
    room = 20
    swept = {"x": np.linspace(0, 1, n_cells, dtype=np.float32), "k": np.arange(n_cells, dtype=np.int32)}
    seeds = np.arange(100, 100 + n_seeds, dtype=np.uint32)
    cells, numbers, counts = sequential.distribute(swept, seeds, n_cells, devices, room)
    assert numbers.shape == (devices, room) and counts.prod(1).sum() == n_cells * n_seeds
    block = jax.jit(sequential.make_block(one, shapes(), room))
    parts = [block(*jax.tree.map(lambda v, d=d: v[d : d + 1], (cells, numbers, counts)), ()) for d in range(devices)]
    found = sequential.gather(jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts), counts, n_seeds)
    np.testing.assert_array_equal(found["sum"], swept["x"] + seeds.astype(np.float32)[:, None])
    expected = np.broadcast_to(swept["k"][:, None] * np.arange(3), (n_seeds, n_cells, 3))
    np.testing.assert_array_equal(found["row"], expected)


def test_room_is_bounded_by_bytes():
    small, large = (jax.ShapeDtypeStruct((n,), jnp.float32) for n in (4, sequential.ROOM // 8))
    assert sequential.room_for({"a": small}, 256) == 256
    assert sequential.room_for({"a": small, "b": large}, 256) == 1
    assert sequential.room_for({}, 7) == 7


def test_chunks_of_all_shapes_share_one_program(toys, monkeypatch):
    monkeypatch.setattr(program, "MAP_RUNS", 8)
    static = split(toys.Toy())[0]
    described = Program(ref_to(toys.decay), ref_to(toys.Toy), static, "map")
    cells = tuple(split(toys.Toy(lr=lr))[1] for lr in (0.01, 0.02, 0.03))
    program.compiled_map.cache_clear()
    chunks = [Chunk(described, cells, (4, 5)), Chunk(described, cells[1:2], (3, 4, 5)), Chunk(described, cells, (5,))]
    both, few, last = (program.run_chunk(chunk).arrays["measured_x"] for chunk in chunks)
    assert program.compiled_map.cache_info().currsize == 1
    np.testing.assert_array_equal(few[1:, 0], both[:, 1])
    np.testing.assert_array_equal(last[0], both[1])
    more = program.run_chunk(Chunk(described, cells, (1, 2, 3, 4)))  # 12 runs: more than there was room for
    np.testing.assert_array_equal(more.arrays["measured_x"][3], both[0])
    assert program.compiled_map.cache_info().currsize == 2


# What suits a program, told by its jaxpr.


def test_groups_are_as_large_as_what_their_largest_loop_computes_allows(toys):
    def facts(trial, cls):
        return traced_facts(Program(ref_to(trial), ref_to(cls), split(cls())[0]))

    assert facts(toys.decay, toys.Toy)["group"] == 0  # a loop of 20 steps, over in no time

    def loop(x):
        return jax.lax.fori_loop(0, 1000, lambda _, x: x + 1, x)  # 8 bytes for the counter, 800 for x

    inner = list(subjaxprs(jax.make_jaxpr(loop)(jnp.zeros(100)).jaxpr))
    assert step_bytes(inner) == pytest.approx(100 * jnp.zeros(1).dtype.itemsize, abs=16)
