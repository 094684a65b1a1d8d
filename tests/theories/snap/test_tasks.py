"""The classes have the tokens, laws, queries and frequencies that they should have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.snap import tasks
from jaxdyn.theories.snap.gradient.original import Layered


def test_random_classes(x64):
    one = tasks.random_task(jax.random.key(0), 20, 3, 2, 0.25, 1.0, queries=2)
    p = np.asarray(one.p)
    assert p.shape == (3, 20) and np.allclose(p.sum(1), 1) and np.allclose(p[:, 0], 0.25)
    assert [list(np.nonzero(row)[0]) for row in p] == [[0, 1, 2], [0, 3, 4], [0, 5, 6]]
    assert list(one.query) == [0, 1, 0] and list(one.label) == [9, 10, 11]
    assert np.allclose(one.weight, np.array([1, 2, 3]) / 6)


def test_weighted_classes(x64):
    task = tasks.weighted_task(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0]))
    p = np.asarray(task.p)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_allclose(4 * p[0, :5], [1, 1, 2, 0, 0])
    np.testing.assert_allclose(8 * p[1, :5], [1, 0, 0, 3, 4])
    assert p.shape == (2, 9) and (p[:, 5:] == 0).all()
    np.testing.assert_array_equal(task.label, [7, 8])
    np.testing.assert_array_equal(task.query, [0, 1])


def test_given_weights_replace_the_random_ones(x64):
    one = tasks.random_task(jax.random.key(0), 20, 3, 2, 0.4, weights=(1.0, 3.0))
    p = np.asarray(one.p)
    np.testing.assert_allclose(p[:, 0], 0.4)
    for n in range(3):
        np.testing.assert_allclose(p[n, 1 + 2 * n : 3 + 2 * n], [0.15, 0.45])


@pytest.mark.parametrize("weights", [(1.0, 2.0), (1.0, 2.0, -1.0)])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(jd.UsageError, match="weights is none or 3 positive numbers"):
        Layered(weights=weights)
