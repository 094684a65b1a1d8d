"""Shared fixtures."""

import jax
import pytest

pytest_plugins = "pytester"


@pytest.fixture
def x64():
    """Run the test inside ``jax.enable_x64(True)``, as the engine runs every trial."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keep the tests out of the user's cache folder."""
    patch = pytest.MonkeyPatch()
    patch.setenv("JAXDYN_CACHE", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()
