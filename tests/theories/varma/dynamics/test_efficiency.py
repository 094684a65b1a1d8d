"""Efficiency against NumPy and under scaling; crossings and halves of known curves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.li2 import model
from jaxdyn.theories.varma.dynamics import efficiency as theory


def test_efficiency_is_numpys_and_does_not_change_with_scale(x64):
    params = model.init(jax.random.key(0), 5, 8, "float64")
    pairs, labels = model.pairs(5), jnp.arange(25) % 5
    only = jnp.arange(25) < 10
    out = np.asarray(model.predict(params, pairs))
    margins = [out[i, i % 5] - np.max(np.delete(out[i], i % 5)) for i in range(10)]
    norm = np.sqrt(sum(np.sum(np.asarray(x) ** 2) for x in params))
    value = float(theory.efficiency(jnp.asarray(out), labels, only, params))
    assert value == pytest.approx(np.mean(margins) / norm**3, rel=1e-12)
    double = jax.tree.map(lambda x: 2 * x, params)
    assert float(theory.efficiency(model.predict(double, pairs), labels, only, double)) == pytest.approx(value, rel=1e-12)


def test_crossing_of_a_power_law_and_ends():
    share = np.array([0.1, 0.2, 0.4])
    assert theory.crossing(share, share**-1.5, 0.3**-1.5) == pytest.approx(0.3)
    assert theory.crossing(share, share**-1.5, 100.0) == pytest.approx(0.1)
    assert theory.crossing(share, share**-1.5, 0.1) == pytest.approx(0.4)


def test_half_interpolates_where_the_accuracy_passes_it():
    share = np.array([0.1, 0.2, 0.3])
    assert theory.half(share, np.array([0.0, 0.25, 0.75])) == pytest.approx(0.25)
    assert theory.half(share, np.array([0.5, 0.6, 0.7])) == pytest.approx(0.1)
    assert np.isnan(theory.half(share, np.array([0.0, 0.1, 0.2]))) and np.isnan(theory.half(share, np.array([0.6, 0.7, 0.8])))
