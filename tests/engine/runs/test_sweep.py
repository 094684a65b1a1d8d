"""Sweeps against a plain loop over runs, chunks, and what a run may depend on."""

import concurrent.futures as cf
import functools
import time

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.engine.base import progress
from jaxdyn.engine.base.devices import Devices, elsewhere
from jaxdyn.engine.base.reference import ref_to
from jaxdyn.engine.claims.setting import columns, join, split
from jaxdyn.engine.programs import program as program_module
from jaxdyn.engine.runs import sweep as sweep_module
from jaxdyn.engine.runs.blocks import Request, Runs
from jaxdyn.engine.runs.planning import plan
from jaxdyn.errors import UsageError
from jaxdyn.status import DIVERGED, FAILED, OK

EPS = {"float32": 2.0**-23, "float64": 2.0**-52}


@functools.cache
def jitted(trial):
    return jax.jit(trial)


def loop(trial, setting, seed):
    """One run by itself: the trial called with the setting's numbers and the key of its seed."""
    static, cell = split(setting)
    with jax.enable_x64(True):
        swept = {name: column[0] for name, column in columns(type(setting), static, [cell]).items()}
        key = jax.random.fold_in(jax.random.key(0, impl="threefry2x32"), np.uint32(seed))
        return jax.device_get(jitted(trial)(join(type(setting), static, swept), key))


def test_dimensions_and_coordinates(decay_data):
    assert decay_data.predicted_x.dims == ("rate", "lr", "seed", "form", "entry")
    assert decay_data.measured_x.dims == ("rate", "lr", "seed", "entry")
    assert decay_data.status.dims == ("rate", "lr", "seed")
    assert decay_data.form.values.tolist() == ["printed", "derived"]
    assert decay_data.lr.values.tolist() == [0.01, 0.02, 0.04]
    assert decay_data.seed.values.tolist() == [0, 1, 2, 3]
    assert (decay_data.steps == 20).all() and decay_data.steps.dtype == np.int32
    assert decay_data.above.dtype == bool


NET = {"lr": [0.05, 0.1, 0.2]}  # with 4 seeds: the shape that most tests of ``net`` share, since every shape compiles


def test_executors_equal_a_loop_over_runs(toys):
    grid = jd.grid(toys.Net, **NET)
    for executor in ("vmap", "map", "flat"):
        ds = jd.sweep(toys.net, grid, 4, executor=executor)
        for cell in grid.cells():
            alone = loop(toys.net, cell, 2)
            # 10 contracting steps of sums over 16 points and 8 units: 10 * (16 + 8) roundings, a factor 4 for order and tanh
            for name in ("loss", "hidden"):
                want = alone.measured[name].value
                atol = 960 * EPS["float32"] * np.abs(want).max()
                np.testing.assert_allclose(ds[f"measured_{name}"].sel(lr=cell.lr, seed=2), want, rtol=0, atol=atol)


@pytest.mark.slow
def test_ode_runs_equal_a_loop_over_runs_and_are_mapped(toys):
    ds = jd.sweep(toys.solved, jd.grid(toys.Flow, rate=[0.5, 2.0]), 2)
    for rate in (0.5, 2.0):
        alone = loop(toys.solved, toys.Flow(rate=rate), 1)
        np.testing.assert_allclose(ds.measured_y.sel(rate=rate, seed=1), alone.measured["y"].value, rtol=1e-9)
        np.testing.assert_allclose(ds.predicted_y.sel(rate=rate, seed=1), alone.predicted["y"].value, rtol=4 * EPS["float64"])
    assert np.abs(ds.measured_y / ds.predicted_y - 1).max() < 1e-9


def test_codes_switch_between_branches_in_one_program(toys, chunks_run):
    ds = jd.sweep(toys.decay, jd.grid(toys.Toy, optimizer=["sign", "gd"], lr=0.01), 2)
    assert len(chunks_run) == 1
    assert ds.optimizer.values.tolist() == ["sign", "gd"]
    start = ds.start.sel(optimizer="gd")
    np.testing.assert_allclose(ds.measured_x.sel(optimizer="gd"), start * 0.99**20, rtol=1e-14)
    np.testing.assert_allclose(ds.measured_x.sel(optimizer="sign"), start - 0.2, rtol=1e-14)


def test_every_run_lands_at_its_coordinates(toys, few_runs):
    """Static and swept axes in any order, seeds in any order, chunks that end anywhere: checked against the closed form."""
    grid = jd.grid(toys.Toy, lr=[0.04, 0.01], size=[2, 3], rate=[1.0, 0.25, 0.5], optimizer=["sign", "gd"])
    ds = jd.sweep(toys.decay, grid, [7, 3, 5], memory=few_runs(toys.decay, toys.Toy(), 5))
    assert ds.status.dims == ("lr", "size", "rate", "optimizer", "seed")
    for seed in (3, 5, 7):
        for size in (2, 3):
            start = loop(toys.decay, toys.Toy(size=size), seed).recorded["start"].value
            np.testing.assert_array_equal(ds.start.sel(seed=seed, size=size)[..., :size], np.broadcast_to(start, (2, 3, 2, size)))
    want = xr.where(ds.optimizer == "gd", ds.start * (1 - ds.lr * ds.rate) ** 20, ds.start - 20 * ds.lr)
    xr.testing.assert_allclose(ds.measured_x, want.transpose(*ds.measured_x.dims).rename(ds.measured_x.name), rtol=1e-13)


@pytest.mark.parametrize("executor", ["map", pytest.param("vmap", marks=pytest.mark.slow)])
def test_runs_in_chunks_of_their_own_are_found_by_other_grids(toys, tmp_path, executor):
    """With ``chunk=1`` the shards of one grid serve every grid that has the runs; only what is new is computed."""
    options = {"out": tmp_path / "runs", "chunk": 1, "executor": executor}
    first = jd.sweep(toys.decay, jd.grid(toys.Toy, lr=[0.01, 0.02]), 2, **options)
    before = sorted(p.name for p in (tmp_path / "runs").rglob("*.nc"))
    assert len(before) == 4
    more = jd.sweep(toys.decay, jd.grid(toys.Toy, lr=[0.04, 0.02]), [1, 2], **options)
    after = sorted(p.name for p in (tmp_path / "runs").rglob("*.nc"))
    assert len(after) == 7 and set(before) < set(after)
    np.testing.assert_array_equal(more.measured_x.sel(lr=0.02, seed=1), first.measured_x.sel(lr=0.02, seed=1))


def test_a_swept_learning_rate_is_traced_once(toys):
    """Traces: one, and once more since the program is new, however many values there are."""
    counts = []
    for size, many in ((31, 1), (32, 16)):  # fresh static fields: no program is cached
        toys.TRACES.clear()
        jd.sweep(toys.decay, jd.grid(toys.Toy, size=size, lr=list(np.linspace(0.001, 0.1, many))), 2)
        counts.append(len(toys.TRACES))
    assert counts[0] == counts[1] <= 2
    toys.TRACES.clear()
    jd.sweep(toys.decay, jd.grid(toys.Toy, size=32, lr=list(np.linspace(0.002, 0.2, 16))), 2)
    assert len(toys.TRACES) == 1, "traced to see whether it is the same program"


def test_static_fields_group_into_programs(toys, chunks_run):
    ds = jd.sweep(toys.decay, jd.grid(toys.Toy, size=[2, 3], kind=["plain", "fancy"], weights=[(1,), (1, 2)], lr=[0.01, 0.02]), 2)
    assert len({c.program for c in chunks_run}) == 8 == len(chunks_run)
    assert ds.sizes["weights"] == 2 and ds.weights.values.tolist() == ["1", "1:2"]
    assert (ds.status == OK).all()


def test_ragged_runs_are_padded_with_nan_only(toys):
    ds = jd.sweep(toys.decay, jd.grid(toys.Toy, size=[2, 3]), 2)
    assert ds.sizes["entry"] == 3
    assert ds.measured_x.sel(size=2).isnull().values.tolist() == [[False, False, True]] * 2
    assert not ds.measured_x.sel(size=3).isnull().any()
    assert (ds.status == OK).all(), "padding is no failure"
    assert all(c.passed for c in toys.close(ds.sel(form="derived")))


@pytest.mark.parametrize("sizes", [[3], [2, 3]])
def test_float32_stays_float32(toys, sizes):
    ds = jd.sweep(toys.decay, jd.grid(toys.Toy, size=sizes, dtype="float32"), 2)
    for name in ("predicted_x", "measured_x", "start"):
        assert ds[name].dtype == np.float32
    alone = loop(toys.decay, toys.Toy(dtype="float32"), 1)
    np.testing.assert_allclose(ds.measured_x.sel(size=3, seed=1), alone.measured["x"].value, rtol=40 * EPS["float32"])
    assert jd.sweep(toys.net, jd.grid(toys.Net), 1).measured_hidden.dtype == np.float32


def test_nothing_outside_the_sweep_changes_its_precision(toys):
    assert not jax.config.jax_enable_x64
    with jax.enable_x64(True):
        inside = jd.sweep(toys.net, jd.grid(toys.Net), 1)
    assert inside.identical(jd.sweep(toys.net, jd.grid(toys.Net), 1))
    assert not jax.config.jax_enable_x64


def test_a_run_alone_equals_the_run_in_the_sweep(toys):
    ds = jd.sweep(toys.net, jd.grid(toys.Net, **NET), 4)
    alone = jd.sweep(toys.net, jd.grid(toys.Net, lr=0.1), [3])
    np.testing.assert_allclose(alone.measured_loss.squeeze("seed"), ds.measured_loss.sel(lr=0.1, seed=3), rtol=960 * EPS["float32"])


@pytest.mark.parametrize("executor", ["vmap", "map", "flat"])
def test_bits_do_not_depend_on_place_or_neighbours(toys, executor, same_bits):
    lrs, seeds = NET["lr"], [5, 1, 7, 2]
    grid = jd.grid(toys.Net, **NET)
    ds = jd.sweep(toys.net, grid, seeds, executor=executor)
    turned = jd.sweep(toys.net, grid.replace(lr=lrs[::-1]), seeds[::-1], executor=executor)
    assert same_bits(ds, turned.sel(lr=lrs, seed=seeds))
    others = jd.sweep(toys.net, grid.replace(lr=[0.1, 3.0, 1e30]), [9, 1, 4, 6], executor=executor)
    assert same_bits(ds.sel(lr=0.1, seed=1), others.sel(lr=0.1, seed=1))


def test_runs_of_other_fields_share_random_numbers(toys):
    ds = jd.sweep(toys.decay, jd.grid(toys.Toy, rate=[0.5, 1.0], optimizer=["gd", "sign"], kind=["plain", "fancy"]), 3)
    assert (ds.start == ds.start.isel(rate=0, optimizer=0, kind=0)).all()
    assert len(np.unique(ds.start.isel(rate=0, optimizer=0, kind=0))) == 9, "seeds differ"
    other = jd.sweep(toys.decay, jd.grid(toys.Toy), [2])
    assert (other.start.squeeze("seed") == ds.start.isel(rate=0, optimizer=0, kind=0).sel(seed=2)).all()


@pytest.mark.parametrize("runs", [1, 2, 3, 5, 7])
def test_a_memory_budget_splits_into_equal_chunks(toys, chunks_run, few_runs, decay_data, runs):
    grid = jd.grid(toys.Toy, rate=[0.5, 1.0], lr=[0.01, 0.02, 0.04])
    ds = jd.sweep(toys.decay, grid, 4, memory=few_runs(toys.decay, toys.Toy(), runs))
    assert len({c.shape for c in chunks_run}) == 1, "chunks are compiled for one shape"
    assert all(c.runs <= runs for c in chunks_run) and len(chunks_run) >= 24 / runs
    xr.testing.assert_allclose(ds, decay_data, rtol=1e-14)


def test_a_diverging_run_is_kept_counted_and_poisons_nobody(toys, same_bits):
    grid = jd.grid(toys.Toy, lr=[0.01, 1e30, 0.02])
    ds = jd.sweep(toys.decay, grid, 3)
    assert ds.status.values.tolist() == [[OK] * 3, [DIVERGED] * 3, [OK] * 3]
    assert ds.sizes == {"lr": 3, "seed": 3, "form": 2, "entry": 3}
    assert not np.isfinite(ds.measured_x.sel(lr=1e30)).any()
    healthy = jd.sweep(toys.decay, grid.replace(lr=[0.01, 0.03, 0.02]), 3)
    assert same_bits(ds.sel(lr=[0.01, 0.02]), healthy.sel(lr=[0.01, 0.02]))


@pytest.mark.slow
def test_solver_status_reaches_the_dataset(toys):
    ds = jd.sweep(toys.solved, jd.grid(toys.Flow, rate=[1.0, 1e9]), 2)
    assert (ds.status.sel(rate=1.0) == OK).all() and (ds.status.sel(rate=1e9) != OK).all()


def test_which_seeds(toys):
    assert jd.sweep(toys.decay, jd.grid(toys.Toy), range(3, 6)).seed.values.tolist() == [3, 4, 5]
    assert jd.sweep(toys.decay, jd.grid(toys.Toy), np.int64(2)).seed.values.tolist() == [0, 1]
    for seeds in (np.arange(3), jax.numpy.arange(3), (0, np.uint8(1), 2), 3, np.array(3), range(3)):
        assert sweep_module.chosen_seeds(seeds) == range(3)


@pytest.mark.parametrize("seeds", [0, [], -1, [-1], [2**32], 2**60, 1.5, "two", None])
def test_unusable_seeds_are_refused(toys, seeds):
    with pytest.raises(jd.UsageError, match="seed"):
        jd.sweep(toys.decay, jd.grid(toys.Toy), seeds)


def test_unknown_executor_and_empty_chunks_are_refused(toys):
    with pytest.raises(jd.UsageError, match="chunk=0 is not allowed: chunk is at least 1"):
        jd.sweep(toys.decay, jd.grid(toys.Toy), 1, chunk=0)
    with pytest.raises(jd.UsageError, match="executor='fast' is not allowed: executor is auto, vmap, map or flat"):
        jd.sweep(toys.decay, jd.grid(toys.Toy), executor="fast")


class Called:
    """An object that can be called, and its method."""

    def __call__(self, s, key):
        """Nothing."""

    def method(self, s, key):
        """Nothing."""


REFUSED = {
    "trial": [None, "x", 5, functools.partial(print), Called(), Called().method, Called],
    "grid": [None, Called, 5, {"a": 1}],
    "chunk": ["3", 1.5, None, True, 0, -1, np.float64(3), np.ones(2, int)],
    "memory": ["x", -1, 0, True, 2e9],
    "executor": ["fast", None, 3, ["vmap"], np.array(["vmap", "map"])],
    "cluster": ["dask", 5, cf.ThreadPoolExecutor, object()],
    "progress": [5, "bar", type("Told", (), {"start": print})()],
    "out": [5, b"x", "a\0b", "", "\ud800", ["x"], True, 10**5000],
    "seeds": [
        [True, False],
        b"ab",
        bytearray(b"ab"),
        {0: 1},
        np.array([True]),
        np.bool_(True),
        [1.0],
        10**5000,
        np.ones((2, 2), int),
    ],
}


@pytest.mark.parametrize(
    ("name", "value"), [pytest.param(n, v, id=f"{n} {i}") for n, values in REFUSED.items() for i, v in enumerate(values)]
)
def test_arguments_of_another_kind_are_refused_before_anything_runs(toys, chunks_run, tmp_path, monkeypatch, name, value):
    monkeypatch.chdir(tmp_path)
    arguments = {"trial": toys.decay, "grid": jd.grid(toys.Toy), "seeds": 2, "out": "runs"} | {name: value}
    with pytest.raises(jd.UsageError) as error:
        jd.sweep(**arguments)
    message = str(error.value)
    assert "is not allowed: " in message and "\n" not in message and len(message) < 250
    assert name in message or (name == "trial" and "a function" in message)
    assert not chunks_run and not list(tmp_path.iterdir())


def test_a_setting_is_no_grid(toys):
    for grid in (toys.Toy, toys.Toy()):
        with pytest.raises(jd.UsageError, match="grid=.*Toy.* is not allowed: grid is what jd.grid returns"):
            jd.sweep(toys.decay, grid)


def test_a_nested_trial_is_refused(toys):
    with pytest.raises(jd.UsageError, match="must be defined at the top level of a module"):
        jd.sweep(lambda s, key: None, jd.grid(toys.Toy))


def test_a_trial_that_raises_says_so(toys):
    with pytest.raises(ValueError, match="this trial is broken"):
        jd.sweep(toys.broken, jd.grid(toys.Toy))
    with pytest.raises(jd.UsageError, match="must return jd.observables.* it returned dict"):
        jd.sweep(toys.no_observables, jd.grid(toys.Toy))


def test_an_axis_called_like_a_field_is_refused(toys):
    with pytest.raises(jd.UsageError, match="rate"):
        jd.sweep(toys.clashing, jd.grid(toys.Toy, rate=[1.0, 2.0]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"predicted": {"x": 1.0}}, "predicted 'x' has no measured 'x'; measured are: none"),
        ({"predicted": {"x": 1.0}, "measured": {"y": 1.0}}, "measured are: y"),
        ({"measured": {"x": np.ones(3)}}, r"measured 'x' has shape \(3,\): name its axes, jd.named\(x, \"axis\"\)"),
    ],
)
def test_observables_say_what_is_wrong(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        jd.observables(**fields)
    with pytest.raises(jd.UsageError, match="needs 2 axis names, got 'a'"):
        jd.named(np.ones((2, 2)), "a")


class Inline(cf.Executor):
    """An executor that runs at once, in this process."""

    def submit(self, function, /, *args, **kwargs):
        """Run the function now."""
        future = cf.Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def test_any_executor_gives_the_same_bits(toys, few_runs, same_bits):
    grid = jd.grid(toys.Net, **NET)
    memory = few_runs(toys.net, toys.Net(), 2)
    here = jd.sweep(toys.net, grid, 4, memory=memory)
    assert same_bits(here, jd.sweep(toys.net, grid, 4, memory=memory, cluster=Inline()))
    with cf.ThreadPoolExecutor(2) as threads:
        assert same_bits(here, jd.sweep(toys.net, grid, 4, memory=memory, cluster=threads))


@pytest.mark.parametrize("cluster", [None, Inline()])
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_chunk_that_fails_fails_the_sweep_with_its_error(toys, few_runs, monkeypatch, cluster, bad):
    run_chunk, calls = sweep_module.run_chunk, []

    def failing(chunk):
        calls.append(chunk)
        if len(calls) == bad + 1:
            raise MemoryError("no room")
        return run_chunk(chunk)

    monkeypatch.setattr(sweep_module, "run_chunk", failing)
    with pytest.raises(MemoryError, match="no room"):
        jd.sweep(toys.decay, jd.grid(toys.Toy), 8, memory=few_runs(toys.decay, toys.Toy(), 2), cluster=cluster)


def test_progress_is_told_of_every_run(toys, few_runs):
    class Told:
        total = done = 0

        def start(self, total, done):
            self.total, self.done = total, done

        def advance(self, runs, facts):
            self.done += runs
            assert facts["run_seconds"] >= 0 and facts["compile_seconds"] >= 0

    told = Told()
    jd.sweep(toys.decay, jd.grid(toys.Toy), 8, memory=few_runs(toys.decay, toys.Toy(), 2), progress=told)
    assert told.total == told.done == 8


def test_shape_of_a_result_without_store(toys):
    chunk = program_module.Chunk(
        program_module.Program(
            ref_to(toys.decay), ref_to(toys.Toy), tuple((n, getattr(toys.Toy(), n)) for n in toys.Toy.static_fields), "vmap"
        ),
        ((1.0, 0.01, "gd"), (2.0, 0.01, "sign")),
        (4, 5, 6),
    )
    result = program_module.run_chunk(chunk)
    assert result.arrays["measured_x"].shape == (3, 2, 3) and result.dims["measured_x"] == ("entry",)
    assert result.facts["runs"] == 6


@jd.setting
class Plain:
    """A swept field and a fixed one."""

    a: jd.Swept = 1.0
    n: int = 3


def axis_named_n(s, key):
    return jd.observables(measured={"z": jd.named(jax.numpy.ones(3) * s.a, "n")})


def records_a(s, key):
    return jd.observables(measured={"z": s.a}, recorded={"a": s.a})


def ends_as_a(s, key):
    return jd.observables(measured={"z": s.a}, status=(s.a * 1.01).astype(jax.numpy.int32))


def turned_for_four(s, key):
    z = jax.numpy.arange(4.0).reshape(2, 2) * s.a
    return jd.observables(measured={"z": jd.named(z, "i j") if s.n == 3 else jd.named(z.T, "j i")})


def more_for_four(s, key):
    return jd.observables(measured={"z": s.a}, recorded={"x": s.a} if s.n == 4 else {})


@pytest.mark.filterwarnings("ignore:.*reads what it does not declare")  # the tests of this module list folders
@pytest.mark.parametrize("executor", ["vmap", "map", "flat"])
@pytest.mark.parametrize(("trial", "axes"), [(axis_named_n, {"n": [3, 4]}), (records_a, {"a": [1.0, 2.0]})])
def test_names_of_swept_fields_are_refused_before_the_run(trial, axes, executor, tmp_path):
    for out in (None, tmp_path / "out"):
        with pytest.raises(jd.UsageError, match="has the name of a field that is swept"):
            jd.sweep(trial, jd.grid(Plain, **axes), 2, executor=executor, out=out)
    assert not list(tmp_path.rglob("*.nc"))
    assert jd.sweep(trial, jd.grid(Plain, **({"a": [1.0, 2.0]} if "n" in axes else {"n": [3, 4]})), 1).sizes


def test_a_status_that_is_no_code_is_a_failure():
    ds = jd.sweep(ends_as_a, jd.grid(Plain, a=[0.0, 4.0, 5.0, 99.0, -3.0]))
    assert ds.status.values.ravel().tolist() == [0, 4, FAILED, FAILED, FAILED]


@pytest.mark.parametrize(("trial", "name"), [(turned_for_four, "measured_z"), (more_for_four, "x")])
@pytest.mark.parametrize("order", [[3, 4], [4, 3]])
def test_all_settings_of_a_grid_have_the_same_observables(trial, name, order):
    with pytest.raises(jd.UsageError, match=f"returns {name} for some settings only, or with other axes"):
        jd.sweep(trial, jd.grid(Plain, n=order))


def test_a_list_of_which_most_is_stored_is_as_short_as_its_rest(toys, tmp_path, monkeypatch):
    """On an accelerator one more run is not filled up to all; where whole lists are run as well, all are one program."""
    compile_block, lengths = program_module.compile_block, []

    def counted(of, block, swept, seeds, shared):
        lengths.append(*seeds.shape)
        return compile_block(of, block, swept, seeds, shared)

    monkeypatch.setattr(program_module, "compile_block", counted)
    with elsewhere(Devices("gpu")):
        for seeds, chunk in ((range(30), 100), (range(31), 100), (range(29, 64), 16)):
            jd.sweep(toys.decay, jd.grid(toys.Toy, lr=[0.125]), seeds, out=tmp_path, chunk=chunk)
    assert lengths == [30, 1, 12]


def test_a_sweep_shows_a_bar_of_its_own_unless_it_is_told_not_to(toys, monkeypatch):
    shown = []

    class Seen(progress.Delayed):
        def __enter__(self):
            shown.append(self)
            return super().__enter__()

    monkeypatch.setattr(progress, "Delayed", Seen)
    for given, bars in ((None, 1), (True, 2), (False, 2)):
        jd.sweep(toys.decay, jd.grid(toys.Toy), 2, progress=given)
        assert len(shown) == bars
    for wrong in (3, "bar", progress.Progress):
        with pytest.raises(UsageError, match=r"progress=.* is not allowed: progress is True, False, None, or a bar with start"):
            jd.sweep(toys.decay, jd.grid(toys.Toy), 2, progress=wrong)


def test_after_the_first_chunk_none_is_begun_that_is_expected_to_end_too_late(toys, monkeypatch):
    """Of programs of 5, 60 and 20 seconds with 30 to go, the second is left; the first one that begins need not fit."""
    requests = [Request(toys.decay, jd.grid(toys.Toy, size=size), range(2)) for size in (1, 2, 3)]
    jobs = [plan([request], store=None)[0] for request in requests]
    seconds = dict(zip((job.program for job in jobs), (5.0, 60.0, 20.0), strict=True))
    monkeypatch.setattr(sweep_module, "expected", lambda job: seconds[job.program])

    def ran(order, until):
        return [*sweep_module.execute([jobs[i] for i in order], Runs(), None, until=time.monotonic() + until)]

    one, two, three = seconds
    assert ran((0, 1, 2), 30) == [one, three]
    assert ran((1, 0), 30) == [two, one] and ran((1, 0), -1) == []
    assert ran((0, 1, 2), float("inf")) == [one, two, three]
    with cf.ThreadPoolExecutor(2) as pool:
        assert set(sweep_module.execute(jobs, Runs(), pool, until=time.monotonic() + 30)) == {one, three}
