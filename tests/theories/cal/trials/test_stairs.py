"""When a curve crosses a level."""

import jax
import jax.numpy as jnp
import pytest

from jaxdyn.theories.cal.trials import stairs


def test_crossing_interpolates(x64):
    ts, y = jnp.array([0.0, 1.0, 3.0]), jnp.array([0.0, 0.2, 0.8])
    cross = jax.jit(stairs.crossing)
    assert float(cross(ts, y, 0.5)) == pytest.approx(2.0)
    assert float(cross(ts, y, 0.9)) == 3.0 and float(cross(ts, y + 1, 0.9)) == 0.0
