"""When losses settle below a level."""

import jax.numpy as jnp
import pytest

from jaxdyn.theories.kumar.dynamics.times import settled


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([1.0, 0.1, 0.001, 0.001], 1.5),
        ([1.0, 0.001, 1.0, 0.0001], 2.5),  # the last fall counts
        ([1.0, 1.0, 1.0, 1.0], 3.0),  # never: the last time
        ([0.001, 0.001, 0.0001, 0.0001], 0.0),  # always: the first
    ],
)
def test_last_fall_counts(x64, losses, expected):
    assert float(settled(jnp.arange(4.0), jnp.asarray(losses), 0.01)) == pytest.approx(expected)
