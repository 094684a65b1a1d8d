"""Lazy results: ``jd.sweep(…, out=…, lazy=True)`` reads the shards when values are asked for."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd

dask_array = pytest.importorskip("dask.array")
GAPS = [7, 3, 50, 12, 5, 4, 40, 6, 0, 9]  # seeds that are neither contiguous nor in order
FIELDS = {"rate": [0.5, 1.0, 2.0], "lr": [0.01, 0.02]}

EXECUTORS = ["flat", "vmap", "map"]


@pytest.fixture
def both(toys, tmp_path):
    """A function that runs a sweep lazily in a new folder, and in memory from the same shards; it returns both results."""

    def run(trial, grid, seeds, **options):
        lazy = jd.sweep(trial, grid, seeds, out=tmp_path / "out", lazy=True, **options)
        return lazy, jd.sweep(trial, grid, seeds, out=tmp_path / "out", **options)

    return run


def check_same(lazy, eager):
    """Assert that a lazy result says before any value is read what the other one says, and has the same values."""
    assert list(lazy.variables) == list(eager.variables) and dict(lazy.sizes) == dict(eager.sizes)
    assert lazy.attrs == eager.attrs
    for name, variable in lazy.data_vars.items():
        assert isinstance(variable.data, dask_array.Array), f"{name} is in memory"
        assert (variable.dims, variable.dtype) == (eager[name].dims, eager[name].dtype)
    for name, coord in lazy.coords.items():
        assert isinstance(coord.variable.to_index_variable().values, np.ndarray)
        assert coord.dtype == eager[name].dtype
    computed = lazy.compute()
    assert {n: v.dtype for n, v in computed.variables.items()} == {n: v.dtype for n, v in eager.variables.items()}
    xr.testing.assert_identical(computed, eager)


def parts(ds):
    """Into how many parts the results are cut along ``seed``."""
    (count,) = {len(variable.chunksizes["seed"]) for variable in ds.data_vars.values()}
    return count


@pytest.mark.thinned
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_lazy_result_of_one_chunk_is_that_in_memory(toys, both, same_bits, executor):
    lazy, eager = both(toys.decay, jd.grid(toys.Toy, **FIELDS), 4, executor=executor)
    check_same(lazy, eager)
    assert same_bits(lazy.compute(), eager)


def test_several_programs(toys, both):
    """A static axis: each of its values has shards of its own; tuples, codes and numbers among the coordinates."""
    grid = jd.grid(toys.Toy, weights=[(1,), (1, 2)], lr=[0.02, 0.01], optimizer=["sign", "gd"])
    lazy, eager = both(toys.decay, grid, 3, chunk=4)
    check_same(lazy, eager)
    assert lazy.weights.values.tolist() == ["1", "1:2"] and lazy.optimizer.values.tolist() == ["sign", "gd"]
    assert lazy.above.dtype == bool and lazy.steps.dtype == np.int32 and lazy.status.dtype == np.int32


SEVERAL = [("vmap", 6), ("flat", 5), ("map", 3), ("vmap", 3), ("flat", 3), ("map", 6), ("vmap", 1), ("flat", 1), ("map", 1)]


@pytest.mark.parametrize(("executor", "chunk"), [*SEVERAL[:2], *(pytest.param(*p, marks=pytest.mark.slow) for p in SEVERAL[2:])])
def test_several_chunks(toys, both, executor, chunk):
    """Rectangles of seeds and cells, and lists that begin and end within a seed; fewer runs each than there are seeds."""
    lazy, eager = both(toys.decay, jd.grid(toys.Toy, lr=[0.01, 0.02]), 8, chunk=chunk, executor=executor)
    check_same(lazy, eager)
    assert parts(lazy) > 1


@pytest.mark.thinned
@pytest.mark.parametrize("executor", ["vmap", "flat"])
def test_a_memory_budget_cuts_the_result_as_well(toys, both, few_runs, executor):
    lazy, eager = both(toys.decay, jd.grid(toys.Toy, **FIELDS), 16, memory=few_runs(toys.decay, toys.Toy(), 12), executor=executor)
    check_same(lazy, eager)
    assert parts(lazy) > 1


@pytest.mark.thinned
@pytest.mark.parametrize("executor", EXECUTORS)
def test_seeds_that_are_not_contiguous(toys, both, executor):
    lazy, eager = both(toys.decay, jd.grid(toys.Toy, **FIELDS), GAPS, chunk=7, executor=executor)
    check_same(lazy, eager)
    assert lazy.seed.values.tolist() == GAPS
    one = lazy.measured_x.sel(seed=50, rate=2.0)
    np.testing.assert_array_equal(one.values, eager.measured_x.sel(seed=50, rate=2.0).values)


def test_ragged_axes_are_padded_as_in_memory_or_refused(toys, both):
    """Programs whose arrays have several lengths: NaN where there is no entry, or one sentence."""
    grid = jd.grid(toys.Toy, size=[2, 3], lr=[0.01, 0.02])
    try:
        lazy, eager = both(toys.decay, grid, 6, chunk=4)
    except jd.UsageError as error:
        assert "lazy=True is not allowed: " in str(error) and "\n" not in str(error)
    else:
        check_same(lazy, eager)
        assert lazy.measured_x.sel(size=2).isnull().any("seed").compute().values.tolist() == [[False, False, True]] * 2


def test_what_is_stored_is_not_run_again(toys, tmp_path, chunks_run):
    """Nor what another sweep stored in part; reading values runs nothing."""
    grid = jd.grid(toys.Toy, lr=[0.01, 0.02])
    options = {"out": tmp_path, "chunk": 1, "executor": "map"}
    jd.sweep(toys.decay, grid.replace(lr=[0.02]), [3, 1], **options)
    assert len(chunks_run) == 2
    lazy = jd.sweep(toys.decay, grid, [0, 1, 3], lazy=True, **options)
    assert len(chunks_run) == 6
    again = jd.sweep(toys.decay, grid, [0, 1, 3], lazy=True, **options)
    eager = jd.sweep(toys.decay, grid, [0, 1, 3], **options)
    check_same(lazy, eager)
    check_same(again, eager)
    assert len(chunks_run) == 6


def test_a_diverged_run_is_told_from_the_others(toys, both):
    lazy, eager = both(toys.decay, jd.grid(toys.Toy, lr=[0.01, 1e30]), 4, chunk=4)
    check_same(lazy, eager)
    assert (lazy.status.compute() == 0).any() and (lazy.status.compute() != 0).any()


def test_numbers_of_another_dtype(toys, both):
    lazy, eager = both(toys.net, jd.grid(toys.Net, lr=[0.05, 0.1]), 4, chunk=4)
    check_same(lazy, eager)
    assert lazy.measured_loss.dtype == np.float32 and lazy.measured_loss.mean("seed").dtype == np.float32


def test_judges_and_statistics_work_on_it(toys, both):
    """With every scheduler of threads."""
    lazy, eager = both(toys.decay, jd.grid(toys.Toy, **FIELDS), 12, chunk=8)
    for scheduler in ("synchronous", "threads"):
        mean = lazy.measured_x.mean("seed").compute(scheduler=scheduler)
        # 12 numbers below 2, added in another order
        np.testing.assert_allclose(mean, eager.measured_x.mean("seed"), rtol=0, atol=12 * 2 * 2.0**-52)
    (check,) = toys.close(lazy.sel(form="derived").compute())
    assert check.passed


@pytest.mark.parametrize("name", ["the first", "all"])
def test_a_damaged_shard_is_one_sentence(toys, tmp_path, name):
    """Found when the result is opened, or when its values are read."""
    grid, options = jd.grid(toys.Toy, **FIELDS), {"out": tmp_path, "chunk": 12}
    jd.sweep(toys.decay, grid, 8, **options)
    shards = sorted(tmp_path.glob("shards/*/*.nc"))
    for shard in shards[: 1 if name == "the first" else None]:
        data = bytearray(shard.read_bytes())
        data[len(data) // 2] ^= 0xFF
        shard.write_bytes(bytes(data))
    with pytest.raises(jd.UsageError, match="damaged") as error:
        jd.sweep(toys.decay, grid, 8, lazy=True, **options).compute()
    assert "\n" not in str(error.value)


def test_without_a_folder_there_is_nothing_to_read_from(toys, chunks_run):
    with pytest.raises(jd.UsageError, match="lazy=True is not allowed: .*out") as error:
        jd.sweep(toys.decay, jd.grid(toys.Toy), 2, lazy=True)
    assert "\n" not in str(error.value) and not chunks_run


@pytest.mark.parametrize("value", [1, 0, None, "yes", "", np.ones(2, bool)])
def test_another_kind_of_lazy_is_refused(toys, tmp_path, chunks_run, value):
    with pytest.raises(jd.UsageError, match="lazy=.* is not allowed: lazy is True or False"):
        jd.sweep(toys.decay, jd.grid(toys.Toy), 2, out=tmp_path / "out", lazy=value)
    assert not chunks_run and not list(tmp_path.iterdir())


def test_without_dask_it_says_how_to_get_it_before_anything_runs(toys, tmp_path, chunks_run, monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "dask"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(jd.UsageError) as error:
        jd.sweep(toys.decay, jd.grid(toys.Toy), 2, out=tmp_path / "out", lazy=True)
    assert "lazy=True needs the library dask: pip install 'jaxdyn[dask]'" in str(error.value)
    assert "\n" not in str(error.value) and not chunks_run and not list(tmp_path.iterdir())


WIDE = r"""
import json, re, resource, sys
from pathlib import Path

import jax
import jax.numpy as jnp

import jaxdyn as jd

SEEDS, ENTRIES, BUDGET = 3000, 2**16, 2**25


@jd.setting
class Wide:
    a: jd.Swept = 1.0


def trial(s, key):
    draw = s.a * jax.random.uniform(key, (), jnp.float64)
    return jd.observables(measured={"x": jd.named(jnp.full(ENTRIES, draw), "entry")}, recorded={"draw": draw})


def peak():  # ru_maxrss of a process on Linux begins with that of its parent, here of all tests before
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * int(re.findall(r"VmHWM:\s*(\d+) kB", status.read_text(encoding="utf-8"))[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    out = Path(sys.argv[1])
    jd.sweep(trial, jd.grid(Wide), 2, out=out / "small", lazy=True, memory=BUDGET).mean("seed").compute(scheduler="synchronous")
    before = peak()
    ds = jd.sweep(trial, jd.grid(Wide), SEEDS, out=out / "large", lazy=True, memory=BUDGET)
    swept = peak()
    mean = ds.measured_x.mean("seed").compute(scheduler="synchronous")
    facts = {"bytes": ds.nbytes, "before": before, "swept": swept, "peak": peak()}
    wrong = abs(mean - ds.draw.values.mean()).max()
    print(json.dumps(facts | {"wrong": float(wrong), "seeds": ds.sizes["seed"]}))
"""


@pytest.mark.slow
def test_a_result_larger_than_the_memory_it_takes(tmp_path):
    """1.6 GB of numbers that pack well: the process that makes and averages them holds less than a third of them at a time."""
    script = tmp_path / "wide.py"
    script.write_text(WIDE, encoding="utf-8")
    command = [sys.executable, str(script), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=tmp_path, env=os.environ, timeout=500)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["bytes"] > 1.5e9 and found["seeds"] == 3000
    # an average of 3000 numbers below 1, added in any order: 3000 roundings of a sum below 3000, over 3000
    assert found["wrong"] < 3000 * 2.0**-53
    assert found["swept"] - found["before"] < found["bytes"] / 3, "the sweep keeps its results"
    assert found["peak"] - found["before"] < found["bytes"] / 3, "reading keeps what was read"
