"""Exact solutions behind Theorem 4 of JoMA, against mpmath and SciPy's solvers."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.theories.joma.dynamics import thm4

pytestmark = pytest.mark.usefixtures("x64")


C_AT_INFINITY = {0.5: 0.194895, 1: 0.880825, 2: 6.343538, 3: 55.50084, 4: 1227.033}


orbit = jax.jit(thm4.orbit)
clock = jax.jit(thm4.clock)


@pytest.mark.parametrize("mu", C_AT_INFINITY)
def test_offset_at_infinity(mu):
    exact = mpmath.quad(lambda x: mpmath.expm1(mpmath.mpf(mu) ** 2 / 2 * (2 * x - x**2)) / x, [0, 0.5, 1])
    value = float(thm4.offset(jnp.float64(800.0), jnp.float64(mu**2 / 2)))
    assert abs(value / float(exact) - 1) < 1e-13
    assert abs(value / C_AT_INFINITY[mu] - 1) < 3e-6


@settings(deadline=None, max_examples=8)
@given(mu=st.floats(0.4, 4), start=st.floats(-0.3, 0.3), s=st.floats(0.5, 30))
def test_offset_from_any_start(mu, start, s):
    s0 = -np.log1p(-start / mu)
    with jax.enable_x64(True):
        value = float(thm4.offset(jnp.float64(s), jnp.float64(mu**2 / 2), jnp.float64(s0)))
    exact = mpmath.quad(lambda x: mpmath.expm1(mu**2 / 2 * (2 * x - x**2)) / x, [mpmath.e**-s, mpmath.e**-s0])
    assert abs(value - float(exact)) < 1e-11 * max(1, abs(float(exact)))


def test_orbit_solves_the_equation():
    mu, v0 = np.array([0.7, 1.5, 2.5]), np.array([0.2, -0.3, 0.1])
    t = np.array([0.05, 0.3, 1.0, 2.0])
    oracle = scipy.integrate.solve_ivp(
        lambda _, v: (mu - v) * np.exp(v**2 / 2), (0, 2), v0, t_eval=t, method="Radau", rtol=1e-10, atol=1e-12
    )
    s = orbit(jnp.array(t)[:, None], jnp.array(mu**2 / 2), jnp.array(-np.log1p(-v0 / mu)))
    np.testing.assert_allclose(-mu * np.expm1(-s), oracle.y.T, atol=1e-8)


@settings(deadline=None, max_examples=10)
@given(mu=st.floats(0.3, 4), start=st.floats(-0.3, 0.25), log_t=st.floats(-3, 5))
def test_orbit_inverts_the_clock(mu, start, log_t):
    with jax.enable_x64(True):
        kappa, s0, t = jnp.float64(mu**2 / 2), jnp.float64(-np.log1p(-start / mu)), jnp.float64(10**log_t)
        s = orbit(t, kappa, s0)
        assert abs(clock(s, kappa, s0) / t - 1) < 1e-11
        assert s > s0


def test_orbit_in_softmax_time():
    mu, temperature = np.array([1.2, 2.0, 2.9, 3.7]), 3.0
    tau = np.linspace(0, 40, 21)

    def rate(_, v):
        p = scipy.special.softmax(v**2 / temperature)
        return (mu - v) * p

    oracle = scipy.integrate.solve_ivp(rate, (0, 40), np.full(4, 0.05), t_eval=tau, method="DOP853", rtol=1e-11, atol=1e-13)
    s0 = jnp.array(-np.log1p(-0.05 / mu))
    s = thm4.orbit_in_softmax_time(jnp.array(tau), jnp.array(mu**2 / temperature), s0)
    np.testing.assert_allclose(-mu * np.expm1(-s), oracle.y.T, atol=1e-8)
    np.testing.assert_allclose(jnp.sum(s - s0, -1), tau, atol=1e-11)


def test_limits_of_the_slope_ratio():
    mu, c = np.array([1.0, 2.0, 2.5]), 0.7
    kappa = jnp.array(mu**2 / 2)
    t = clock(jnp.array([25.0, 26.0]), kappa[0])
    s = orbit(t[:, None], kappa)
    np.testing.assert_allclose((s[1] - s[0]) / (s[1, 0] - s[0, 0]), thm4.slope_ratio(kappa), rtol=1e-9)

    def rate(_, s):
        return np.sqrt((mu * -np.expm1(-s)) ** 2 + c)

    far = scipy.integrate.solve_ivp(rate, (0, 30), np.zeros(3), t_eval=[25, 30], rtol=1e-11, atol=1e-12).y
    measured = (far[:, 1] - far[:, 0]) / (far[0, 1] - far[0, 0])
    np.testing.assert_allclose(thm4.linear_slope_ratio(jnp.array(mu), jnp.float64(c)), measured, rtol=1e-8)


def test_entropy_of_logits():
    logits = np.array([[0.0, 0.0, 0.0], [800.0, 0.0, -800.0], [1.0, 2.0, 3.0]])
    expected = [np.log(3), 0.0, scipy.stats.entropy(scipy.special.softmax(logits[2]))]
    np.testing.assert_allclose(thm4.entropy_of_logits(jnp.array(logits)), expected, atol=1e-14)


def test_softmax_logits_against_scipy():
    mu, v0, temperature = np.array([1.2, 2.0, 3.1]), np.full(3, 0.05), 3.0

    def field(_, y):
        v, z = y[:3], y[3:]
        p = scipy.special.softmax(z)
        growth = 2 * v * p * (mu - v)
        return np.concatenate([p * (mu - v), (growth - p * growth.sum()) / temperature])

    tau = np.linspace(0, 40, 9)
    exact = scipy.integrate.solve_ivp(field, (0, 40), np.concatenate([v0, v0**2 / 3]), t_eval=tau, rtol=1e-10, atol=1e-12).y.T
    v, z = jax.jit(thm4.softmax_logits)(jnp.array(tau), jnp.array(mu), jnp.array(v0), jnp.float64(temperature)).ys
    np.testing.assert_allclose(np.concatenate([v, z], 1), exact, atol=1e-7)
    np.testing.assert_allclose(z.sum(1), z[0].sum(), atol=1e-9)  # the softmax conserves the sum of the logits


def test_separate_rate_is_an_eigenvalue_of_the_linearised_flow():
    """Of v' = p e^z (y - e^z v), z = (|v|^2 - |v0|^2) / 2, by finite differences at its fixed point."""
    mu, v0, share = np.array([0.7, -0.4, 0.9]), np.array([0.2, 0.1, -0.1]), 0.125

    def factor(v):
        return np.exp((v @ v - v0 @ v0) / 2)

    def field(v):
        return share * factor(v) * (factor(mu) * mu - factor(v) * v)

    h = 1e-6
    jacobian = np.stack([(field(mu + h * e) - field(mu - h * e)) / (2 * h) for e in np.eye(3)], 1)
    rates = np.sort(-np.linalg.eigvals(jacobian).real)
    slow, along = (float(thm4.separate_rate(jnp.float64(mu @ mu / 2), jnp.float64(v0 @ v0 / 2), share, nodes)) for nodes in (3, 1))
    np.testing.assert_allclose(rates, [slow, slow, along], rtol=1e-8)
