"""The construction and its margin."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.morwani import model
from jaxdyn.theories.morwani.dynamics import largest as theory


def test_construction_is_a_sum_of_cosines_with_the_largest_margin(x64):
    p, count = 7, 3
    share = jnp.full(count, 1 / count, jnp.float64)
    params = theory.construct(p, share, jnp.zeros(8 * count))
    assert float(jnp.sum(model.cubes(params))) == pytest.approx(1, rel=1e-12)
    a, b = np.divmod(np.arange(p * p), p)
    angle = 2 * np.pi * (a + b)[:, None, None] - 2 * np.pi * np.arange(p)[:, None]
    waves = np.cos(angle * np.arange(1, count + 1) / p).sum(-1) / count
    np.testing.assert_allclose(model.outputs(params), (2 / (3 * p)) ** 1.5 / 2 * waves, atol=1e-15)
    assert float(model.margin(params)) == pytest.approx(theory.largest(p), rel=1e-12)


def test_one_frequency_and_unequal_shares_have_less(x64):
    shift = jnp.zeros(24)
    single = theory.construct(7, jnp.array([1.0, 0.0, 0.0]), shift)
    assert float(model.normalised(single)) == pytest.approx(theory.one_frequency(7), rel=1e-12)
    uneven = theory.construct(7, jnp.array([0.4, 0.3, 0.3]), shift)
    assert float(model.normalised(uneven)) < theory.largest(7)
