"""How programs are compiled, with the options that this version of JAX has, and how the runs of a chunk are grouped."""

import contextlib
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.engine.base.reference import Ref, ref_to
from jaxdyn.engine.claims.setting import split
from jaxdyn.engine.programs import program
from jaxdyn.engine.programs.chunk import Chunk, Program
from jaxdyn.engine.runs import planning
from jaxdyn.engine.runs.blocks import Request


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


@pytest.mark.parametrize("executor", ["map", "vmap", "flat"])
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
    chunk = Chunk(Program(ref_to(toys.decay), ref_to(toys.Toy), static, executor), (cell,), (4,), zipped=executor == "flat")
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


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("cuda", "JAX_PLATFORMS=cuda is not allowed: JAX finds no such device (no driver); cpu is always there"),
        ("", "JAX cannot open its device (no driver); JAX_PLATFORMS=cpu does without it"),
    ],
)
def test_a_device_that_cannot_be_opened_is_one_sentence(monkeypatch, asked, said):
    def devices():
        raise RuntimeError("no driver\nand a long story")

    monkeypatch.setattr(program.jax, "devices", devices)
    monkeypatch.setenv("JAX_PLATFORMS", asked)
    with pytest.raises(jd.UsageError) as error:
        program.check_device()
    assert str(error.value) == said


def test_a_list_of_runs_gives_what_rectangles_give(toys):
    """In any order, with groups and in a larger room; the shapes of results are those of one cell."""
    static, _ = split(toys.Toy())
    swept = tuple(split(toys.Toy(rate=1.0 + i, lr=0.01 * (i + 1)))[1] for i in range(3))
    described = Program(ref_to(toys.decay), ref_to(toys.Toy), static, "vmap")
    arrays = program.run_chunk(Chunk(described, swept, (4, 7))).arrays
    places = [(1, 0), (0, 2), (0, 0), (1, 2), (1, 1)]  # seed, cell
    one = Chunk(dataclasses.replace(described, executor="flat"), (), (), zipped=True)
    one = one.part([(swept[c], (4, 7)[s]) for s, c in places])
    for group, room in ((0, 0), (0, 9), (2, 0), (1, 7), (3, 5)):
        found = program.run_chunk(dataclasses.replace(one, group=group, room=(room, room)))
        assert found.zipped
        for name, array in arrays.items():
            expected = np.stack([array[place] for place in places])[:, None]
            assert found.arrays[name].shape == expected.shape
            np.testing.assert_allclose(found.arrays[name], expected, rtol=1e-15)


@pytest.fixture
def memory(monkeypatch):
    """A function that limits the working memory of compiled programs to so many bytes; it gives the runs that XLA was asked for."""
    compile_block, asked = program.compile_block, []

    def forget():
        program.GROUPS.clear()
        for compiled in (program.compiled_list, program.compiled_rectangle, program.compiled_map):
            compiled.cache_clear()

    def limit(most):
        forget()

        def limited(*args):
            compiled = compile_block(*args)
            used = compiled.memory_analysis()
            asked.append(used.temp_size_in_bytes)
            if used.temp_size_in_bytes > most:
                raise jax.errors.JaxRuntimeError(f"RESOURCE_EXHAUSTED: Out of memory allocating {asked[-1]} bytes.")
            return compiled

        monkeypatch.setattr(program, "compile_block", limited)
        return asked

    yield limit
    forget()


@pytest.mark.parametrize("executor", ["flat", "vmap"])
def test_where_the_memory_does_not_suffice_half_as_many_runs_are_made_at_once(toys, memory, executor):
    grid, seeds = jd.grid(toys.Net, width=32, lr=[0.1, 0.2]), 16
    whole = jd.sweep(toys.net, grid, seeds, executor=executor)
    asked = memory(0)
    with pytest.raises(jd.UsageError, match="one run of .*net needs more memory than there is: a larger device is needed"):
        jd.sweep(toys.net, grid, seeds, executor=executor)
    assert len(asked) == 6 and all(more > 1.5 * less for more, less in zip(asked[:3], asked[1:4], strict=True)), "for 32, 16, …, 1"
    sufficient = asked[2]
    asked = memory(sufficient)
    del asked[:]
    parts = jd.sweep(toys.net, grid, seeds, executor=executor)
    assert len(asked) == 3
    np.testing.assert_allclose(parts.measured_loss, whole.measured_loss, rtol=1e-6)
    jd.sweep(toys.net, grid, [20], executor=executor)
    assert len(asked) == 4, "another chunk begins with what sufficed"
    (job,) = planning.plan([Request(toys.net, grid, tuple(range(30, 46)))], store=None, executor=executor)
    program.prepare(job.chunks[0])
    assert len(asked) == 4, "and so does the thread that compiles ahead"


def test_runs_that_are_made_at_once_are_counted_as_devices_divide_them(monkeypatch):
    """A rectangle along its longer side: of 3 x 2 runs each of 8 devices has one of three and all of two."""
    monkeypatch.setattr(program.jax, "local_device_count", lambda: 8)
    one = Chunk(Program(Ref("m", "f"), Ref("m", "S"), (), "vmap"), ((1,), (2,), (3,)), (0, 1))
    assert program.halved(one, 0) == 1
    with pytest.raises(jd.UsageError, match="more memory than there is"):
        program.halved(dataclasses.replace(one, seeds=(0, 1, 2), zipped=True), 0)


def test_a_claim_whose_run_does_not_fit_is_skipped(toys, memory):
    memory(-1)
    verified = jd.verify(toys.CLAIMS[0])
    assert verified.verdict == "skipped" and "needs more memory than there is" in verified.message


def test_other_errors_of_xla_are_not_taken_for_a_lack_of_memory(toys, monkeypatch):
    def broken(*args):
        raise jax.errors.JaxRuntimeError("INTERNAL: a bug")

    monkeypatch.setattr(program, "compile_block", broken)
    with pytest.raises(jax.errors.JaxRuntimeError, match="a bug"):
        jd.sweep(toys.net, jd.grid(toys.Net, width=9), 2)


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


def test_a_plan_hands_groups_to_chunks_under_vmap(toys, monkeypatch):
    facts = {"fingerprint": "", "bytes": 100, "executor": "vmap", "group": 12, "heavy": False}
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
@pytest.mark.parametrize("executor", ["map", "vmap", "flat"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_maximum_passes_over_nan(executor, dtype):
    """JAX's maximum on CPU does, of 4,096 numbers and more; a run that has NaN must count as diverged."""
    ds = jd.sweep(extremes, jd.grid(Long, bad=[0.0, 1.0], dtype=dtype), executor=executor)
    assert ds.status.values.ravel().tolist() == [0, 1]
    assert np.isnan(ds.measured_most.sel(bad=1.0)).all() and np.isnan(ds.measured_least.sel(bad=1.0)).all()
    assert float(ds.measured_most.sel(bad=0.0).item()) == 2.0
