"""The border of a map as a power law."""

import math

import numpy as np
import pytest
import scipy.optimize

from jaxdyn.engine.verification.boundary import fit, has_law


@pytest.mark.parametrize("exponent", [-2.5, -1.0, 0.0, 0.4, 3.0])
def test_an_exact_law_is_found(exponent):
    x = np.linspace(-3, 4, 40)
    found = fit(x, 0.7 + exponent * x)
    assert found.exponent == pytest.approx(exponent, abs=1e-9) and found.factor == pytest.approx(math.exp(0.7))
    assert found.interval == pytest.approx((exponent, exponent), abs=1e-6)
    assert found.spread == pytest.approx(1.0) and found.points == 40


def test_the_slope_is_that_of_orthogonal_regression():
    rng = np.random.default_rng(0)
    t = rng.uniform(-3, 3, 200)
    x, y = t + 0.1 * rng.normal(size=200), 1 - 0.5 * t + 0.1 * rng.normal(size=200)
    found = fit(x, y)
    oracle = scipy.optimize.minimize(lambda p: np.sum((y - p[0] * x - p[1]) ** 2) / (1 + p[0] ** 2), [0.0, 0.0], tol=1e-12).x
    assert (found.exponent, math.log(found.factor)) == pytest.approx(tuple(oracle), abs=1e-4)
    assert found.spread == pytest.approx(math.exp(0.1), rel=0.02)


@pytest.mark.slow
def test_the_interval_holds_the_slope_about_as_often_as_it_says():
    rng, held, count = np.random.default_rng(1), 0, 400
    for _ in range(count):
        t = np.linspace(-2, 2, 48)
        low, high = fit(t + 0.1 * rng.normal(size=48), 0.8 * t + 0.1 * rng.normal(size=48)).interval
        held += low <= 0.8 <= high
    assert 0.9 < held / count < 0.99


def test_an_upright_border_has_no_finite_slope():
    y = np.linspace(0, 3, 32)
    found = fit(np.full(32, 2.0), y)
    assert found.exponent == math.inf and found.spread == pytest.approx(1.0)


def test_only_a_border_with_a_finite_interval_has_a_law():
    border = {"exponent": 0.5, "factor": 1.0, "interval": [0.4, 0.6]}
    assert has_law(border) and not has_law(None) and not has_law(border | {"interval": [0.4, None]})
