"""Closed laws of Scan & Snap's growth against mpmath, finite differences and the numbers of the theory."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.theories.snap.dynamics import growth, reduced
from jaxdyn.theories.snap.dynamics.clock import clock
from jaxdyn.theories.snap.dynamics.gradient import gamma_integral
from jaxdyn.theories.snap.snapping import common_pair

# P_c = .05, P_d = .95, K = 4, M = 1000, eta_Y = 1, eta_Z = 2e6, rho = 1: B at t = 10 and 1e7, reduced ODE and law, by K_m
VALUES = {
    1: ((1.67993, 2.76048), (1.67925, 2.75978)),
    2: ((1.18746, 1.90789), (1.18701, 1.90743)),
    4: ((0.76353, 1.19582), (0.76326, 1.19554)),
}


def exact_b(t, per_query, odds=1 / 19, k=4, m=1000, eta_y=1.0, eta_z=2e6):
    """The law with mpmath's own root of the clock's equation."""
    with mpmath.workdps(30):
        s = mpmath.mpf(m) * eta_y * t / k
        u = mpmath.findroot(lambda x: (m - 1) * x + mpmath.exp(x) - 1 - s, (0, mpmath.log(s + m)), solver="anderson")
        drive = eta_z * (mpmath.mpf(m - 1) / m) ** 2 * k * u**2 / (2 * eta_y)
        q = 2 * (1 + per_query)
        return float(mpmath.log1p(q * drive * mpmath.mpf(odds) ** 2 * (k - 1) * m / mpmath.mpf(m - 1) ** 2) / q)


@jax.jit
def law(t, per_query):
    u = clock(1000.0 * t / 4, 1000.0)
    drive = 2e6 * gamma_integral(u, 1000.0, 4.0, 1.0)
    return growth.b_law(drive, growth.constant(1 / 19, 4.0, 1000.0), growth.exponent(per_query))


def test_values_of_the_law_and_of_the_reduced_dynamics(x64):
    @jax.jit
    @jax.vmap
    def grown(per_query):
        problem = common_pair.problem_of(common_pair.Pair(odds=1 / 19))._replace(member=reduced.queries(4, per_query))
        return reduced.solve(problem, jnp.array([0.0, 10.0, 1e7])).b[1:, 0]

    ts = (10.0, 1e7)
    for per_query, b in zip(VALUES, grown(jnp.array(list(VALUES), jnp.float64)), strict=True):
        ode, predicted = VALUES[per_query]
        np.testing.assert_allclose(b, ode, atol=6e-6)
        np.testing.assert_allclose([law(t, per_query) for t in ts], predicted, atol=6e-6)
        np.testing.assert_allclose([law(t, per_query) for t in ts], [exact_b(t, per_query) for t in ts], rtol=1e-12)


@jax.jit
def slopes(log_t, per_query, eta_z):
    """Of the law in ln t: the formula, and by autodiff."""
    size, k = 1000.0, 4.0

    def b(log_t):
        drive = eta_z * gamma_integral(clock(size * jnp.exp(log_t) / k, size), size, k, 1.0)
        return growth.b_law(drive, growth.constant(0.05, k, size), growth.exponent(per_query))

    u = clock(size * jnp.exp(log_t) / k, size)
    drive = eta_z * gamma_integral(u, size, k, 1.0)
    return growth.slope(u, drive, growth.constant(0.05, k, size), growth.exponent(per_query), size), jax.grad(b)(log_t)


@settings(deadline=None, max_examples=20)
@given(st.floats(-2, 6), st.sampled_from([1.0, 2.0, 4.0]), st.floats(0, 7))
def test_slope_is_the_derivative_of_the_law(exponent, per_query, rate):
    with jax.enable_x64(True):
        predicted, exact = slopes(exponent * np.log(10), per_query, 10.0**rate)
        np.testing.assert_allclose(predicted, exact, rtol=1e-9)


def test_branches_are_the_limits_of_the_drive(x64):
    size, k, eta = 1e4, 3.0, 0.5
    edge = float(k * np.log(size) / eta)
    for t, branch, tolerance in ((1e-3 * edge, growth.early_drive, 1e-3), (1e6 * edge, growth.late_drive, 1e-4)):
        exact = gamma_integral(clock(size * eta * t / k, size), size, k, eta)
        np.testing.assert_allclose(branch(t, size, k, eta), exact, rtol=tolerance)


@settings(deadline=None, max_examples=20)
@given(st.floats(1e-6, 5), st.floats(0.01, 1))
def test_partner_keeps_the_conserved_quantity(z, odds):
    with jax.enable_x64(True):
        other = float(growth.partner(jnp.asarray(z), odds))
        predicted = float(growth.gain(1 / odds**2 - 1, jnp.asarray(z)))
    np.testing.assert_allclose(np.expm1(-2 * other) / odds**2, np.expm1(-2 * z), rtol=1e-9)
    assert 0 <= other <= z * (1 + 1e-12)
    relative = np.exp(2 * (z - other)) / odds**2 - 1  # of the dominant token over the other
    np.testing.assert_allclose(predicted, relative, rtol=1e-8, atol=1e-8)


def test_suppression_is_the_attention_of_two_tokens(x64):
    b, odds, k = 0.7, 0.3, 2.0
    common, distinct = odds * np.exp(-k * b), np.exp(b)
    np.testing.assert_allclose(growth.suppressed(b, odds, k), common / (common + distinct), rtol=1e-7)


def test_dawson_integral(x64):
    for x in (1e-3, 0.3, 1.0, 4.0, 30.0, 1e4):
        nodes = np.concatenate([np.linspace(0, min(x, 8), 20_001), np.geomspace(8, x, 200_001)[1:] if x > 8 else []])
        exact = scipy.integrate.simpson(scipy.special.dawsn(nodes), x=nodes)
        np.testing.assert_allclose(growth.dawson_integral(jnp.asarray(x)), exact, rtol=1e-7)
    late = 0.5 * np.log(2e6) + np.euler_gamma / 4
    np.testing.assert_allclose(growth.dawson_integral(jnp.asarray(1e6)), late, rtol=1e-10)


@pytest.mark.parametrize("q", [4.0, 6.0])
def test_b_with_a_memory_solves_its_equation(x64, q):
    """Of B = epsilon zeta: zeta'' = 1 - (q/2) s zeta'."""
    one = jax.jit(jax.grad(lambda s: growth.b_memory(s, 4.0, 13.0, q) / 0.25))
    two = jax.jit(jax.grad(one))
    for s in (0.2, 1.0, 3.0):
        np.testing.assert_allclose(two(s), 1 - q / 2 * s * one(s), rtol=1e-8, atol=1e-10)


def test_the_memorys_share_is_of_first_order(x64):
    """Against the reduced dynamics with memory, where the decoder learns 1e4 times as fast as the attention."""
    p = jnp.array([[0.001, 0.3, 0.699, 0.0, 0.0], [0.001, 0.0, 0.0, 0.4, 0.599]])
    problem = reduced.Problem(p, jnp.eye(2), 40.0, 2.0, 1e4, 1.0, 0.5)
    ts = jnp.array([0.0, 1.0, 1e2])
    plain, held = (jax.jit(lambda m=m: reduced.solve(problem, ts, memory=m, rtol=1e-13))() for m in (0.0, 1.0))
    f = reduced.features(plain.z[0], problem)
    lag = growth.memory_lag(plain.z, f, plain.u[:, None, None], 1e4, 40.0)
    np.testing.assert_allclose((held.z - plain.z)[1:, :, 1:], lag[1:, :, 1:], rtol=0.02, atol=2e-3 * float(abs(lag).max()))
    odds = p[0, 2] / p[0, 1]
    grown = odds**2 * jnp.expm1(2 * (held.z[-1, 0, 2] - held.z[-1, 0, 1]))
    left = 1 - grown / ((odds**2 - 1) * jnp.expm1(2 * held.z[-1, 0, 2]))
    np.testing.assert_allclose(left, growth.gain_shortfall(f[0, 1], plain.u[-1], 1e4), rtol=0.05)
