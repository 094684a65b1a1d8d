"""Runs of the linear layer: what their starts share, and what their settings refuse."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.linear import training
from tests.theories.joma.helpers import inside as as_in_a_trial


def inside(**fields):
    """A small setting as a trial sees it."""
    return as_in_a_trial(training.LinearLayer(tokens=4, samples=8, **fields))


def test_start_and_data_do_not_depend_on_the_other_fields(x64):
    """Runs of one seed share their random numbers, whatever else differs."""
    key = jax.random.key(4)
    (a, start), (b, moved) = (jax.jit(training.build)(s, key) for s in (inside(), inside(ratio=3.0, start_v=0.5, step=2e-3)))
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.g, b.g)
    assert float(np.abs(start.v).max()) == 0.0
    assert float(np.abs(moved.v).max()) > 0.0


def test_boost_and_tie_set_the_margin(linear_runs, x64):
    assert float(linear_runs.margin.sel(boost=1.5).min()) >= 1.5
    layer, _ = jax.jit(training.build)(inside(nodes=2, tie=1.0, boost=1.3), jax.random.key(0))
    norms = np.sort(np.linalg.norm(np.asarray(layer.x).T @ np.asarray(layer.g), axis=-1))
    assert norms[-1] == pytest.approx(norms[-2], rel=1e-13)


@pytest.mark.parametrize(
    ("wrong", "words"), [({"samples": 3}, "at least as many samples as tokens"), ({"nodes": 1.5}, "a whole number from 1 to 3")]
)
def test_wrong_fields_are_named(wrong, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(training.LinearLayer, **wrong)
