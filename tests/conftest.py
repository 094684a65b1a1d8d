"""Shared fixtures."""

import os
import signal

# before JAX starts: most of the tests' time would go into optimising programs that run once
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import jax
import pytest
from threadpoolctl import threadpool_limits

pytest_plugins = "pytester"


@pytest.fixture
def x64():
    """Run the test inside ``jax.enable_x64(True)``, as the engine runs every trial."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread():
    """As the engine runs programs: threads of several test processes wait for one another."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keep the tests out of the user's cache folder."""
    patch = pytest.MonkeyPatch()
    patch.setenv("JAXDYN_CACHE", str(tmp_path_factory.mktemp("cache")))
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
