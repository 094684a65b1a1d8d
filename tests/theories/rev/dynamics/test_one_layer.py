"""Bounds, exponents and entries of a row against mpmath and a replay."""

import mpmath
import numpy as np
import pytest

from jaxdyn.theories.rev.dynamics import one_layer as theory

M = 7


def test_bound_and_exponents():
    s, size = np.array([1e3, 5e5]), 1000.0
    p = theory.bound(s, size, 0.85)
    np.testing.assert_allclose(p, 1 - 999 / (2 * s**0.85), rtol=1e-6)
    np.testing.assert_allclose(theory.effective_exponent(p, s, size), 0.85, rtol=1e-5)


def test_exponent_of_the_flow(x64):
    with mpmath.workdps(30):
        for s in (1e6, 1e12):
            u = mpmath.findroot(lambda u, s=s: 999 * u + mpmath.exp(u) - 1 - s, mpmath.log(s))
            p = 1 / (1 + 999 * mpmath.exp(-u))
            exact = mpmath.log(999 / (2 * (1 - p))) / mpmath.log(s)
            assert abs(float(theory.effective_exponent(float(p), s, 1000.0)) - float(exact)) < 1e-5
            assert abs(float(theory.flow_exponent(float(u), s, 1000.0)) - float(exact)) < 1e-12
            assert exact < 1 - mpmath.log(2) / mpmath.log(s) < exact + 0.01


def test_time():
    np.testing.assert_allclose(theory.time(0.5, np.array([10.0, 20.0]), 200.0, 40), [25.0, 50.0])


@pytest.mark.parametrize("visits", [0, 1, 40])
def test_entries_of_a_row(x64, visits):
    y, u = np.zeros(M), 0.0
    for _ in range(visits):
        p = np.exp(y) / np.exp(y).sum()
        y += 0.5 * (np.eye(M)[3] - p)
        u += 0.5 * M / (M - 1 + np.exp(u))
    np.testing.assert_allclose(theory.entry_target(u, M), y[3], rtol=1e-12)
    np.testing.assert_allclose(theory.entry_other(u, M), y[0], rtol=1e-12)
