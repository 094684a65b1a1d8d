"""Views of the hypercube keep relevant bits and all signs."""

import jax
import numpy as np
import pytest

from jaxdyn.data import hypercube
from jaxdyn.errors import UsageError


def test_views_keep_relevant_bits_and_signs():
    x = hypercube.points(jax.random.key(0), 500, 8)
    assert set(np.unique(x)) == {-1.0, 1.0} and abs(float(x.mean())) < 0.06  # 4 standard errors of 4000 signs
    for scalar in (True, False):
        v = np.asarray(hypercube.view(jax.random.key(1), x, 3, scalar))
        assert (v[:, :3] == x[:, :3]).all() and (np.sign(v) == x).all() and abs(v).max() <= 1
        sizes = abs(v[:, 3:])
        assert (np.ptp(sizes, axis=1) == 0).all() == scalar
        se = np.sqrt(1 / 12 / (500 if scalar else 2500))
        assert abs(sizes.mean() - 0.5) < 4 * se


def test_pairs_are_views_of_the_same_points():
    v = np.asarray(hypercube.pair(jax.random.key(2), 20, 6, 2, False))
    assert (np.sign(v[0]) == np.sign(v[1])).all() and (v[0, :, 2:] != v[1, :, 2:]).any()


def test_labels_depend_on_relevant_bits_alone():
    x = np.array(hypercube.points(jax.random.key(3), 40, 6))
    y = np.asarray(hypercube.labels(jax.random.key(4), x, 2, 5))
    x[:, 2:] *= -1
    np.testing.assert_array_equal(y, hypercube.labels(jax.random.key(4), x, 2, 5))
    assert y.shape == (5, 40) and 0.2 < y.mean() < 0.8


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "2", float("nan")])
def test_counts_that_are_refused(wrong):
    x = hypercube.points(jax.random.key(0), 3, 4)
    for name, call in (
        ("count", lambda: hypercube.points(jax.random.key(0), wrong, 4)),
        ("dims", lambda: hypercube.pair(jax.random.key(0), 3, wrong, 1, True)),
        ("tasks", lambda: hypercube.labels(jax.random.key(0), x, 2, wrong)),
    ):
        with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is"):
            call()


@pytest.mark.parametrize("relevant", [-1, 5, True, "2", float("nan")])
def test_numbers_of_relevant_bits_that_are_refused(relevant):
    x = hypercube.points(jax.random.key(0), 3, 4)
    for call in (
        lambda: hypercube.view(jax.random.key(0), x, relevant, True),
        lambda: hypercube.labels(jax.random.key(0), x, relevant, 2),
    ):
        with pytest.raises(UsageError, match="relevant=.* is not allowed: relevant is"):
            call()
