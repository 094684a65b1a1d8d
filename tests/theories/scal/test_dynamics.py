"""Scaling laws and white-box coefficients."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import zeta

from jaxdyn.theories.scal.dynamics import laws, whitebox
from jaxdyn.theories.scal.published import LAWS

# Closed forms of loss laws against scipy's minimisation and against numbers checked independently.

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


# The loss of the linear model against direct sums, a number checked independently, and its limits.

P, Q = 1.5, 1.75


@pytest.mark.slow
def test_the_loss_against_a_direct_sum(x64):
    j = np.arange(1, 1_000_001.0)
    tail = zeta(Q, j.size + 1)
    for rate, decay in ((0.0, np.exp(-2 * j**-P * 100.0)), (0.5, (1 - 0.5 * j**-P) ** 400)):
        whole = [np.sum(j[:n] ** -Q * decay[:n]) + np.sum(j[n:] ** -Q) + tail for n in (8, 64)]
        np.testing.assert_allclose(whitebox.loss(jnp.array([8, 64]), 100.0, P, Q, rate), whole, rtol=1e-12)
    limits = whitebox.late(64, Q) + whitebox.large(100.0, P, Q)
    assert float(whitebox.loss(jnp.array([64]), 100.0, P, Q)[0]) == pytest.approx(0.0903, abs=5e-5)
    assert float(limits) == pytest.approx(0.1425, abs=2e-4)


def test_the_limits(x64):
    sizes = jnp.array([64, 512])
    np.testing.assert_allclose(whitebox.loss(sizes, 1e12, P, Q), whitebox.late(sizes + 0.5, Q), rtol=1e-4)
    assert float(whitebox.large(100.0, P, Q)) == pytest.approx(float(whitebox.loss(jnp.array([2048]), 100.0, P, Q)[0]), rel=0.01)
    assert whitebox.exponent(1.5) == 0.4
