"""How programs are compiled, with the options that this version of JAX has, and how the runs of a chunk are grouped."""

import contextlib
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.engine import planning, program
from jaxdyn.engine.chunk import Chunk, Program
from jaxdyn.engine.reference import ref_to
from jaxdyn.engine.runs import Request
from jaxdyn.engine.setting import split


@pytest.fixture(autouse=True)
def forget():
    program.known_options.cache_clear()
    yield
    program.known_options.cache_clear()


def test_the_level_of_optimization_is_known_everywhere():
    assert program.known_options("full").keys() <= program.NAN_KEPT.keys()
    assert program.known_options("quick")["xla_backend_optimization_level"] == 1


def test_an_option_that_is_gone_is_left_out(monkeypatch):
    monkeypatch.setitem(program.COMPILERS, "light", {"xla_backend_optimization_level": 1, "xla_no_such_option": True})
    assert program.known_options("light") == {"xla_backend_optimization_level": 1}


@pytest.mark.parametrize("executor", ["map", "vmap"])
def test_each_chunk_limits_the_libraries_that_are_loaded_by_then(toys, monkeypatch, executor):
    limits = []

    class Controller:
        """Knows the libraries of the time when it is made."""

        def __init__(self):
            self.at = len(limits)

        @contextlib.contextmanager
        def limit(self, **limit):
            limits.append((self.at, limit))
            yield

    monkeypatch.setattr(program, "ThreadpoolController", Controller)
    static, cell = split(toys.Toy())
    chunk = Chunk(Program(ref_to(toys.decay), ref_to(toys.Toy), static, executor), (cell,), (4,))
    for _ in range(2):
        program.run_chunk(chunk)
    assert limits == [(i, {"limits": 1, "user_api": "blas"}) for i in range(2)]


@pytest.mark.thinned
@pytest.mark.parametrize("seeds", [(4,), (0, 7, 3, 5, 1)])
@pytest.mark.parametrize("cells", [1, 4])
def test_runs_in_groups_are_the_runs_at_once(toys, cells, seeds):
    """Groups of some seeds with all cells, or of some cells of one seed; the last is filled up, and what fills it is dropped."""
    static, _ = split(toys.Toy())
    swept = tuple(split(toys.Toy(rate=1.0 + i, lr=0.01 * (i + 1)))[1] for i in range(cells))
    whole = Chunk(Program(ref_to(toys.decay), ref_to(toys.Toy), static, "vmap"), swept, seeds)
    arrays = program.run_chunk(whole).arrays
    assert len({float(x) for x in arrays["measured_x"][..., 0].ravel()}) == cells * len(seeds)
    for group in (1, 2, 3, 7, 100):
        found = program.run_chunk(dataclasses.replace(whole, group=group)).arrays
        for name, array in arrays.items():
            assert found[name].shape == array.shape
            np.testing.assert_allclose(found[name], array, rtol=1e-15)


def test_a_chunk_in_a_larger_room_gives_its_own_runs(toys):
    static, _ = split(toys.Toy())
    swept = tuple(split(toys.Toy(rate=1.0 + i))[1] for i in range(2))
    own = Chunk(Program(ref_to(toys.decay), ref_to(toys.Toy), static, "vmap"), swept, (4, 1, 0))
    arrays = program.run_chunk(own).arrays
    for room in ((2, 3), (3, 3), (2, 5), (4, 6)):
        found = program.run_chunk(dataclasses.replace(own, room=room)).arrays
        for name, array in arrays.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-15, err_msg=f"{name} in {room}")
            assert found[name].shape == array.shape


def test_groups_are_as_large_as_what_their_largest_loop_computes_allows(toys):
    def facts(trial, cls):
        return program.probe(Program(ref_to(trial), ref_to(cls), split(cls())[0]))

    assert facts(toys.decay, toys.Toy)["group"] == 0  # a loop of 20 steps, over in no time

    def loop(x):
        return jax.lax.fori_loop(0, 1000, lambda _, x: x + 1, x)  # 8 bytes for the counter, 800 for x

    inner = list(program.subjaxprs(jax.make_jaxpr(loop)(jnp.zeros(100)).jaxpr))
    assert program.step_bytes(inner) == pytest.approx(100 * jnp.zeros(1).dtype.itemsize, abs=16)


def test_a_plan_hands_groups_to_chunks_under_vmap(toys, monkeypatch):
    facts = {"bytes": 100, "executor": "vmap", "group": 12, "heavy": False}
    monkeypatch.setattr(planning, "facts_of", lambda programs, pool: dict.fromkeys(programs, facts))
    request = Request(toys.decay, jd.grid(toys.Toy), (0, 1))
    for executor, group in (("auto", 12), ("vmap", 12), ("map", 0)):
        (job,) = planning.plan([request], store=None, executor=executor)
        assert [chunk.group for chunk in job.chunks] == [group]


@jd.setting
class Long:
    """Numbers to take the largest of; one of them may be NaN."""

    bad: jd.Swept = 0.0
    size: int = 100_000
    dtype: str = "float32"


def extremes(s, key):
    x = jnp.ones(s.size, s.dtype).at[7].set(jnp.where(s.bad > 0, jnp.nan, 2.0).astype(s.dtype))
    return jd.observables(measured={"most": jnp.max(x), "least": jnp.min(x), "size": jnp.max(jnp.abs(x.reshape(-1, 20)), 1).sum()})


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["map", "vmap"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_maximum_passes_over_nan(executor, dtype):
    """JAX's maximum on CPU does, of 4,096 numbers and more; a run that has NaN must count as diverged."""
    ds = jd.sweep(extremes, jd.grid(Long, bad=[0.0, 1.0], dtype=dtype), executor=executor)
    assert ds.status.values.ravel().tolist() == [0, 1]
    assert np.isnan(ds.measured_most.sel(bad=1.0)).all() and np.isnan(ds.measured_least.sel(bad=1.0)).all()
    assert float(ds.measured_most.sel(bad=0.0).item()) == 2.0
