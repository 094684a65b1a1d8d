"""Closed forms of loss laws against scipy's minimisation and against numbers checked independently."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from jaxdyn.theories.scal.dynamics import laws
from jaxdyn.theories.scal.published import LAWS

KAPLAN = laws.Kaplan(n=8.8e13, d=5.4e13, alpha_n=0.076, alpha_d=0.095)


@pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))
def test_the_additive_optimum_against_scipy(law):
    budget = 5.76e23
    n, d = laws.optimum(law, budget)
    found = minimize_scalar(lambda x: laws.loss(law, np.exp(x), budget / (6 * np.exp(x))), bracket=(15, 30), tol=1e-12)
    assert np.log(n) == pytest.approx(found.x, abs=1e-6)
    assert 6 * n * d == pytest.approx(budget, rel=1e-12)
    assert np.log(laws.optimum(law, 1e21)[0] / laws.optimum(law, 1e20)[0]) / np.log(10) == pytest.approx(laws.exponent(law))


def test_kaplans_optimum_against_scipy():
    n, d = laws.kaplan_optimum(KAPLAN, 1e21)
    found = minimize_scalar(lambda x: laws.kaplan_loss(KAPLAN, np.exp(x), 1e21 / (6 * np.exp(x))), bracket=(15, 30), tol=1e-12)
    assert np.log(n) == pytest.approx(found.x, abs=1e-6)
    assert 6 * n * d == pytest.approx(1e21, rel=1e-12)


@pytest.mark.parametrize(("alpha", "beta", "shift"), [(0.34, 0.28, 0.036), (0.5, 0.25, 0.149)])
def test_the_shift_of_a_parabola_against_polyfit(x64, alpha, beta, shift):
    x = np.log(10) * np.linspace(-1, 1, 15)
    g = np.exp(-alpha * x) / alpha + np.exp(beta * x) / beta
    c = np.polyfit(x, 3 + 0.2 * g, 2)
    found = laws.parabola_shift(alpha, beta, jnp.asarray(x))
    assert found == pytest.approx(-c[1] / (2 * c[0]), rel=1e-9)
    assert found == pytest.approx(shift, abs=5e-4)
    assert laws.parabola_shift(0.3, 0.3, jnp.asarray(x)) == 0
