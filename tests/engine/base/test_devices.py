"""Several devices: the same results, no talk between them, any number of runs."""

import concurrent.futures as cf
import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.engine.base import devices as module
from jaxdyn.engine.base.devices import DISALLOWED, Devices, xla_threads
from jaxdyn.errors import UsageError

TOYS = Path(__file__).parents[1] / "toys.py"
COLLECTIVES = ("all-reduce", "all-gather", "collective-permute", "all-to-all", "reduce-scatter")
CASES = {  # name: trial, setting, grid, seeds, executor; odd numbers of cells and of seeds, more cells than seeds and fewer
    "wide": ("decay", "Toy", {"lr": [0.01, 0.02, 1e30]}, 1, "vmap"),
    "deep": ("decay", "Toy", {"lr": [0.01, 0.02, 1e30]}, 5, "vmap"),
    "one": ("decay", "Toy", {}, 1, "vmap"),
    "solver": ("solved", "Flow", {"rate": [0.5, 1.0, 2.0]}, 5, "vmap"),  # one while loop for all runs of a device
    "map, wide": ("decay", "Toy", {"lr": [0.01, 0.02, 1e30]}, 1, "map"),
    "map, deep": ("decay", "Toy", {"lr": [0.01, 0.02, 1e30]}, 5, "map"),
    "map, one": ("decay", "Toy", {}, 1, "map"),
    "flat": ("decay", "Toy", {"lr": [0.01, 0.02, 1e30]}, 5, "flat"),
    "flat, one": ("decay", "Toy", {}, 1, "flat"),
    "flat, solver": ("solved", "Flow", {"rate": [0.5, 1.0, 2.0]}, 5, "flat"),
    "flat, implicit": ("stiff", "Flow", {"rate": [0.5, 1.0, 2.0]}, 1, "flat"),
    "map, implicit": ("stiff", "Flow", {"rate": [0.5]}, 2, "map"),
}
CHILD = """
import json, sys
import jax
import jaxdyn as jd
from jaxdyn.engine.programs import program
from jaxdyn.engine.base.reference import load_file

toys, cases, out = load_file(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
texts, built = {}, program.compile_block

def noted(*args):
    compiled = built(*args)
    texts[name] = compiled.as_text()
    return compiled

program.compile_block = noted
for name, (trial, cls, fields, seeds, executor) in cases.items():
    grid = jd.grid(getattr(toys, cls), **fields)
    jd.sweep(getattr(toys, trial), grid, seeds, executor=executor).to_netcdf(f"{out}/{name}.nc", engine="h5netcdf")
json.dump({"devices": jax.device_count(), "texts": texts}, open(f"{out}/texts.json", "w", encoding="utf-8"))
"""


def three_devices():
    """Make a worker see three devices (set before it first asks for one)."""
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=3"


def in_child(devices, out, cases=CASES):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    command = [sys.executable, "-c", CHILD, str(TOYS), json.dumps(cases), str(out)]
    done = subprocess.run(command, env=os.environ | {"XLA_FLAGS": flags}, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads((out / "texts.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def on_two(tmp_path_factory):
    out = tmp_path_factory.mktemp("two")
    return out, in_child(2, out)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n == "wide" else ()) for n in CASES])
def test_two_devices_give_the_results_of_one(toys, on_two, name):
    out, facts = on_two
    assert facts["devices"] == 2
    trial, cls, fields, seeds, _ = CASES[name]
    here = jd.sweep(getattr(toys, trial), jd.grid(getattr(toys, cls), **fields), seeds)
    there = xr.load_dataset(out / f"{name}.nc", engine="h5netcdf")
    assert there.sizes == here.sizes
    assert (there.status == here.status).all()
    for variable in here.data_vars:
        rtol = 1e-9 if trial in ("solved", "stiff") else 1e-13  # the solver's tolerance; 20 steps of rounding
        np.testing.assert_allclose(there[variable].transpose(*here[variable].dims), here[variable], rtol=rtol, atol=rtol)


def test_plans_are_for_the_devices_of_workers_where_these_are_known():
    assert module.devices() == module.own_devices() == Devices("cpu")
    with module.elsewhere(Devices("gpu", 2, 100)):
        with module.elsewhere(Devices("tpu")):
            assert module.devices() == Devices("tpu")
        assert module.devices() == Devices("gpu", 2, 100)
    assert module.devices().on_cpu


def test_a_worker_says_what_it_has():
    class Elsewhere(cf.Executor):
        def submit(self, function, *args):
            future = cf.Future()
            future.set_result((function, args)) if self.there else future.cancel()
            return future

    pool = Elsewhere()
    pool.there = True
    assert module.of_workers(pool) == (module.own_devices, ())
    pool.there = False
    with pytest.raises(cf.BrokenExecutor, match="cancelled"):
        module.of_workers(pool)


@pytest.mark.slow
def test_a_sweep_is_planned_for_the_devices_of_its_workers(toys, tmp_path, same_bits):
    """Three of a worker, one here: another program, found again where the plan is made in the same way."""
    grid = jd.grid(toys.Toy, lr=[0.01, 0.02])
    spawn, stored = multiprocessing.get_context("spawn"), {}
    with cf.ProcessPoolExecutor(1, mp_context=spawn, initializer=three_devices) as pool:
        there = module.of_workers(pool)
        assert there == Devices("cpu", 3) and there.kind == "cpu"
        with module.elsewhere(there):
            ds = jd.sweep(toys.decay, grid, 6, cluster=pool, out=tmp_path)
            stored[there.count] = {path.parent.name for path in tmp_path.glob("shards/*/*.nc")}
            assert same_bits(jd.sweep(toys.decay, grid, 6, cluster=pool, out=tmp_path), ds)
    jd.sweep(toys.decay, grid, 6, out=tmp_path)
    assert len(stored[3]) == 1 and len({path.parent.name for path in tmp_path.glob("shards/*/*.nc")}) == 2


def test_the_least_memory_that_a_card_reports_counts(monkeypatch):
    class Card:
        def __init__(self, stats):
            self.memory_stats = lambda: stats

    monkeypatch.setattr(module.jax, "default_backend", lambda: "gpu")
    for limits, least in (([{"bytes_limit": 80}, {"bytes_limit": 70}], 70), ([None], 0), ([{"bytes_limit": 80}, {}], 0)):
        monkeypatch.setattr(module.jax, "local_devices", lambda limits=limits: [Card(stats) for stats in limits])
        assert module.own_devices() == Devices("gpu", len(limits), least)


def test_a_chunk_gets_half_of_all_memory_and_on_cpu_always_the_same():
    assert module.budget(Devices("gpu", 4, 80 * 2**30)) == 160 * 2**30
    assert module.budget(Devices("gpu", 3)) == 3 * module.CPU_BUDGET
    assert {module.budget(Devices("cpu", n, n)) for n in (0, 1, 8)} == {module.CPU_BUDGET}


def test_devices_do_not_talk_to_one_another(on_two):
    for name, text in on_two[1]["texts"].items():
        assert text and not [word for word in COLLECTIVES if word in text], name


def test_the_search_for_collectives_finds_one():
    """The same words do occur where devices talk: the check above can fail."""
    code = (
        "import jax, jax.numpy as jnp\n"
        "from jax.sharding import PartitionSpec as P\n"
        "mesh = jax.make_mesh((2,), ('runs',), axis_types=(jax.sharding.AxisType.Auto,))\n"
        "f = jax.shard_map(lambda x: jax.lax.psum(x, 'runs'), mesh=mesh, in_specs=P('runs'), out_specs=P())\n"
        "print(jax.jit(f).lower(jnp.ones(4)).compile().as_text())\n"
    )
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    text = subprocess.run([sys.executable, "-c", code], env=os.environ | flags, capture_output=True, encoding="utf-8").stdout
    assert [word for word in COLLECTIVES if word in text]


@pytest.mark.slow
@pytest.mark.parametrize("devices", [3, 5])
def test_more_devices_than_runs(toys, tmp_path, devices):
    cases = {name: CASES[name] for name in ("one", "wide", "map, one", "map, wide", "flat", "flat, one")}
    assert in_child(devices, tmp_path, cases)["devices"] == devices
    here = jd.sweep(toys.decay, jd.grid(toys.Toy, **CASES["wide"][2]), 1)
    for name in ("wide", "map, wide"):  # one seed
        there = xr.load_dataset(tmp_path / f"{name}.nc", engine="h5netcdf")
        np.testing.assert_allclose(there.measured_x.transpose(*here.measured_x.dims), here.measured_x, rtol=1e-13)


SUMS = """
import hashlib
import jax
import numpy as np
x = jax.random.normal(jax.random.key(0), (4, 100_000), "float32")
found = jax.jit(lambda x: (x.sum(), x.sum(1), jax.nn.softmax(x)))(x)
print(hashlib.sha256(b"".join(np.asarray(y).tobytes() for y in found)).hexdigest())
"""


@pytest.mark.slow
def test_bits_depend_on_the_number_of_threads():
    """Why it is in a program's identity: long sums are divided among the threads of a processor."""
    found = {}
    for threads in ("1", "1", "4"):
        env = {**os.environ, "PJRT_NPROC": threads, "XLA_FLAGS": ""}
        done = subprocess.run([sys.executable, "-c", SUMS], env=env, capture_output=True, encoding="utf-8", check=True)
        found.setdefault(threads, set()).add(done.stdout)
    assert all(len(same) == 1 for same in found.values()) and found["1"] != found["4"]


def test_the_threads_of_each_process(monkeypatch):
    monkeypatch.delenv("PJRT_NPROC")
    monkeypatch.setattr(module.os, "cpu_count", lambda: 8)
    assert [module.xla_threads(n) for n in (1, 2, 3, 8, 9)] == [8, 4, 2, 1, 1]
    monkeypatch.setenv("PJRT_NPROC", "3")
    assert [module.xla_threads(n) for n in (1, 8)] == [3, 3]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((f"transfer_guard{way}", value) for way in ("", "_host_to_device", "_device_to_host") for value in DISALLOWED),
        *((name, True) for name in ("disable_jit", "debug_nans", "debug_infs", "no_tracing", "no_execution")),
        ("numpy_dtype_promotion", "strict"),
        ("numpy_rank_promotion", "raise"),
        ("random_seed_offset", 3),
    ],
)
def test_options_for_which_a_trial_would_be_blamed_are_refused(toys, name, value):
    option = f"jax_{name}"
    before = getattr(jax.config, option)
    jax.config.update(option, value)
    try:
        with pytest.raises(UsageError, match=f"^JAX_{name.upper()}={value} is not allowed: "):
            jd.sweep(toys.decay, jd.grid(toys.Toy), 1)
    finally:
        jax.config.update(option, before)


@pytest.mark.parametrize("threads", ["x", "0", "-1", "1_0"])
def test_a_number_of_threads_that_is_none_is_refused(monkeypatch, threads):
    monkeypatch.setenv("PJRT_NPROC", threads)
    with pytest.raises(UsageError, match=f"^PJRT_NPROC={threads} is not allowed"):
        xla_threads()
