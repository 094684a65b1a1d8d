"""Correlations against least squares and the definition in numpy, and labels of the wanted sizes."""

import jax
import numpy as np
import pytest

from jaxdyn.theories.li2.features import cca


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("uneven", [0, 1])
def test_classes_have_their_sizes(uneven):
    s = cca.Sample(uneven=uneven, classes=4, each=3, inputs=2)
    x = jax.random.normal(jax.random.key(0), (12, 2))
    sizes = np.asarray(cca.one_hot(s, x, jax.random.key(1)).sum(0)).tolist()
    assert sizes == ([9, 1, 1, 1] if uneven else [3] * 4)


def test_correlations_are_those_of_regression_and_of_the_definition():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 3)), np.eye(3)[rng.permutation(np.repeat(np.arange(3), 10))]
    xc, yc = x - x.mean(0), y - y.mean(0)
    fit = yc @ np.linalg.lstsq(yc, xc[:, 0], rcond=1e-10)[0]
    np.testing.assert_allclose(cca.canonical(x[:, :1], y)[0] ** 2, (fit**2).sum() / (xc[:, 0] ** 2).sum(), rtol=1e-12)
    s_xx, s_yy, s_xy = xc.T @ xc, yc[:, :2].T @ yc[:, :2], xc.T @ yc[:, :2]
    squared = np.linalg.eigvals(np.linalg.solve(s_xx, s_xy) @ np.linalg.solve(s_yy, s_xy.T)).real
    np.testing.assert_allclose(cca.canonical(x, y)[0] ** 2, squared.max(), rtol=1e-10)


def test_the_energy_is_that_of_the_definition():
    y, f = np.eye(2)[[0, 1, 0, 1]], np.array([1.0, 2.0, 3.0, 5.0])
    np.testing.assert_allclose(cca.energy(y, f), 0.5 * 2 * 1.5**2)
