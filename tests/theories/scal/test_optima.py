"""Vertices, lowest curves and slopes against numpy."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.scal import optima


def test_vertex_against_polyfit(x64):
    rng = np.random.default_rng(0)
    x, y, w = np.linspace(20, 25, 9), rng.normal(size=9), rng.uniform(0.5, 2, size=9)
    c = np.polyfit(x, y, 2, w=np.sqrt(w))
    np.testing.assert_allclose(optima.vertex(*(jnp.asarray(v) for v in (x, y, w))), -c[1] / (2 * c[0]), rtol=1e-9)


@pytest.mark.slow
def test_vertices_use_the_sizes_near_the_lowest(x64):
    x = jnp.arange(9.0)
    y = jnp.stack([(x - 3.2) ** 2, (x - 5.7) ** 2]).at[:, 0].set(1e3)
    np.testing.assert_array_equal(optima.near(x, y[0], 2.0), [0, 1, 1, 1, 1, 1, 0, 0, 0])
    np.testing.assert_allclose(optima.vertices(x, y, 2.0), [3.2, 5.7])
    np.testing.assert_array_equal(optima.envelope(x, y), [3, 6])


def test_slope(x64):
    x = jnp.array([0.0, 1.0, 4.0])
    np.testing.assert_allclose(optima.slope(x, 3 * x - 7), 3)
