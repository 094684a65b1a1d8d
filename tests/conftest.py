"""Shared fixtures."""

import jax
import pytest


@pytest.fixture
def x64():
    """Run the test inside ``jax.enable_x64(True)``, as the engine runs every trial."""
    with jax.enable_x64(True):
        yield
