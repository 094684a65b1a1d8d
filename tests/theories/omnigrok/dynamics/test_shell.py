"""Where curves pass a level, and the delay."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.omnigrok.dynamics import shell


def test_passage_is_the_first_fall_in_logarithms(x64):
    x = jnp.array([0.0, 10.0, 20.0, 30.0])
    values = jnp.array([100.0, 10.0, 0.1, 1.0])
    assert float(shell.passage(x, values, 1.0)) == pytest.approx(15)
    assert float(shell.passage(x, values, 1e-9)) == pytest.approx(30)
    assert float(shell.passage(x, values, 1e3)) == pytest.approx(0)


def test_edge_is_the_outermost_rise(x64):
    norms = jnp.array([1.0, 2.0, 4.0, 8.0])
    assert float(shell.edge(norms, jnp.array([9.0, 0.1, 0.1, 10.0]), 1.0)) == pytest.approx(np.sqrt(32))
    assert float(shell.edge(norms, jnp.array([0.1, 0.1, 0.1, 0.1]), 1.0)) == pytest.approx(8)
    assert float(shell.edge(norms, jnp.array([9.0, 9.0, 9.0, 9.0]), 1.0)) == pytest.approx(1)


def test_delay_is_the_time_of_an_exponential(x64):
    rate = jnp.array([1e-2, 1e-3])
    steps = np.asarray(shell.delay(8.0, 5.0, rate))
    np.testing.assert_allclose(8 * np.exp(-np.asarray(rate) * steps), 5, rtol=1e-12)
