"""Shared fixtures."""

import gc
import importlib
import os
import signal
import sys
from importlib.metadata import version
from pathlib import Path

# Before JAX starts: most of the tests' time would go into optimising programs that run once. The plain emitter, with one LLVM
# module per program, takes half the time; other versions may not know these flags, and an unknown one ends the process.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0"
    + (
        " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
        if version("jaxlib").startswith("0.10.")
        else ""
    ),
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")  # a card that is there is not for several processes at once
os.environ.setdefault("PJRT_NPROC", "1")  # threads of XLA: the workers fill the cores
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for programs that the tests start: as below

import hypothesis
import jax
import jaxtyping
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import tests.typechecker

# What functions of these packages take and return is held to their annotations; nothing here imports jaxdyn before.
PACKAGES = "data flow instruments linalg metrics models nn optim sampling stats stepping text theories train".split()
HELD = [f"jaxdyn.{name}" for name in PACKAGES]
jaxtyping.install_import_hook(HELD, f"{tests.typechecker.__name__}.checked")

hypothesis.settings.register_profile("patient", parent=hypothesis.settings(), deadline=None)  # examples compile, machines are slow
hypothesis.settings.load_profile("patient")

pytest_plugins = ("pytester", "tests.shares")
EXPERIMENTS = Path(__file__).parents[1] / "experiments"
# As the engine runs programs: threads of several processes wait for one another. Not in a fixture: imports calculate, too.
threadpool_limits(1, user_api="blas")
gc.disable()  # while modules are imported: they make much and drop little


def pytest_collection_finish():
    """Leave what all modules brought along out of garbage collection, which tracing sets off all the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    gc.enable()


MAPS = 40_000  # memory maps of this process: Linux allows 65,530, and a compiled program takes a dozen for as long as it lives


def memory_maps():
    """The number of this process's memory maps; 0 where the system does not say."""
    try:
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return 0


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """After a file's last test, leave out what it keeps as well: JAX's caches hold most of that, until there are too many maps.

    What its users' modules have read is forgotten: files of a test would have all other tests' modules imported anew.
    """
    from jaxdyn.engine.base import reference

    if nextitem is None or nextitem.path != item.path:
        reference.forget()
        if memory_maps() > MAPS:
            gc.unfreeze()
            jax.clear_caches()
        gc.collect()
        gc.freeze()


@pytest.fixture
def x64():
    """Run the test inside ``jax.enable_x64(True)``, as the engine runs every trial."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keep the tests out of the user's cache folder; all workers of a session share its compiled programs."""
    from jaxdyn.engine.programs.program import use_compilation_cache

    patch = pytest.MonkeyPatch()
    session = tmp_path_factory.getbasetemp()
    session = session.parent if "PYTEST_XDIST_WORKER" in os.environ else session
    patch.setenv("JAXDYN_CACHE", str(session / "cache"))
    use_compilation_cache()
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)  # small programs compile as fast as they are written
    yield
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def interruptible():
    """A shell's background job ignores Ctrl-C, and so would all programs that the tests start: undo it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def script(monkeypatch):
    """Load a script of ``experiments/`` as if it were called."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    here = set(sys.modules)

    def load(name):
        monkeypatch.setattr(sys, "argv", [f"experiments/{name}.py"])
        return importlib.import_module(name)

    yield load
    for name in {path.stem for path in EXPERIMENTS.glob("*.py")} & (set(sys.modules) - here):
        del sys.modules[name]


@pytest.fixture(scope="session")
def small_text(tmp_path_factory):
    """A file of 60 words in a fixed disorder."""
    path = tmp_path_factory.mktemp("text") / "a.txt"
    rng = np.random.default_rng(0)
    path.write_text("\n".join(" ".join(f"w{i}" for i in rng.integers(0, 60, 20)) for _ in range(150)), encoding="utf-8")
    return path
