"""The reduced dynamics of Scan & Snap against an independent integration in time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import flow
from jaxdyn.theories.snap.dynamics import reduced
from jaxdyn.theories.snap.dynamics.clock import clock

SIZE, ETA_Y, ETA_Z = 12.0, 0.7, 3.0


def laws(rng, classes, tokens):
    p = rng.uniform(0.1, 1, (classes, tokens))
    p[0, -1] = p[1, 0] = 0
    return p / p.sum(1, keepdims=True)


def oracle(p, member, rho, ts, memory):
    """The equations of section 2c over time itself, in NumPy: state (u, z, G = integral of f du)."""
    k, d = p.shape
    rows = len(member)

    def field(t, y):
        u, z, g = y[0], y[1 : 1 + rows * d].reshape(rows, d), y[1 + rows * d :].reshape(k, d)
        c = p * np.exp(member.T @ z)
        f = c / np.linalg.norm(c, axis=1, keepdims=True)
        du = ETA_Y * SIZE / k / (SIZE - 1 + np.exp(u))
        held = g if memory else u * f
        drive = ((SIZE - 1) * held - (held.sum(0) - held)) / (SIZE - 1 + np.exp(u))
        step = f * (drive - f * (f * drive).sum(1, keepdims=True))
        return np.concatenate([[du], (rho * ETA_Z * member @ step).ravel(), (f * du).ravel()])

    start = np.zeros(1 + rows * d + k * d)
    sol = scipy.integrate.solve_ivp(field, (0, ts[-1]), start, "DOP853", ts, rtol=1e-11, atol=1e-13)
    return sol.y[0], sol.y[1 : 1 + rows * d].T.reshape(-1, rows, d)


@jax.jit
def solved(p, member, rho, ts, memory):
    problem = reduced.Problem(p, member, SIZE, float(p.shape[0]), ETA_Y, ETA_Z, rho)
    return reduced.solve(problem, ts), reduced.solve(problem, ts, memory=memory)


@pytest.mark.parametrize("per_query", [1.0, 2.0])
def test_integration_over_the_clock_is_integration_over_time(x64, per_query):
    p = laws(np.random.default_rng(0), 4, 5)
    member = np.asarray(reduced.queries(4, per_query))
    ts = np.array([0.0, 0.5, 3.0, 20.0, 100.0])
    plain, remembered = solved(p, member, 0.25, ts, 1.0)
    for path, memory in ((plain, False), (remembered, True)):
        u, z = oracle(p, member, 0.25, ts, memory)
        np.testing.assert_allclose(path.u, u, atol=1e-9)
        np.testing.assert_allclose(path.z, z, atol=1e-9)
    without = solved(p, member, 0.25, ts, 0.0)[1]
    np.testing.assert_allclose(without.z, plain.z, atol=1e-9)
    np.testing.assert_allclose(without.b, plain.b, rtol=1e-7, atol=1e-12)


def test_integration_over_the_clock_is_integration_over_log_time(x64):
    """Ten decades, to t = 1e7: the equation in ln t, with the clock in closed form, from a state of the path itself."""
    p = laws(np.random.default_rng(1), 3, 4)
    problem = reduced.Problem(p, np.eye(3), SIZE, 3.0, ETA_Y, ETA_Z, 1 / 3)
    ts = np.array([0.0, 1e-3, 1.0, 1e3, 1e7])
    path = jax.jit(lambda ts: reduced.solve(problem, ts))(ts)

    def field(t, z, _):
        u = clock(SIZE * ETA_Y * t / 3.0, SIZE)
        return reduced.rates(reduced.features(z, problem), u, problem)[0]

    over = jax.jit(lambda z: flow.solve(flow.log_time(field), z, jnp.log(jnp.asarray(ts[1:])), rtol=1e-11, atol=1e-14))
    solution = over(path.z[1])
    assert int(solution.status) == 0
    np.testing.assert_allclose(solution.ys, path.z[1:], atol=1e-9)


def test_queries_hold_classes_in_a_row(x64):
    np.testing.assert_array_equal(reduced.queries(4, 1.0), np.eye(4))
    expected = np.zeros((4, 4))
    expected[0, :2] = expected[1, 2:] = 1
    np.testing.assert_array_equal(reduced.queries(4, 2.0), expected)


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 1000), per_query=st.sampled_from([1.0, 2.0]))
def test_rows_keep_their_sum_and_distinct_tokens_gain(seed, per_query):
    rng = np.random.default_rng(seed)
    p = np.zeros((4, 5))
    p[:, 0], p[np.arange(4), 1 + np.arange(4)] = rng.uniform(0.1, 0.5), 1.0
    p /= p.sum(1, keepdims=True)
    with jax.enable_x64(True):
        z = np.asarray(solved(p, reduced.queries(4, per_query), 1.0, np.array([0.0, 0.5, 3.0, 20.0, 100.0]), 1.0)[0].z)
    np.testing.assert_allclose(z.sum(-1), 0, atol=1e-11)
    rows = int(4 / per_query)
    np.testing.assert_allclose(z[:, :rows, 0], -per_query * z[:, 0, 1:2].repeat(rows, 1), atol=1e-9)  # z_c = -K_m z_d
    assert (np.diff(z[:, 0, 1]) > 0).all()


def test_a_restart_is_a_run_from_the_attention_it_finds(x64):
    p, member = laws(np.random.default_rng(1), 4, 5), np.eye(4)
    problem = reduced.Problem(p, member, SIZE, 4.0, ETA_Y, ETA_Z)

    @jax.jit
    def both():
        whole = reduced.solve(problem, jnp.array([0.0, 2.0, 10.0, 15.0, 60.0]), restart=10.0)
        return whole, reduced.solve(problem, jnp.array([0.0, 5.0, 50.0]), start=whole.z[2])

    whole, again = both()
    np.testing.assert_allclose(whole.z[2:], again.z, atol=1e-9)
    np.testing.assert_allclose(whole.u[3:], again.u[1:], rtol=1e-12)


def test_a_steady_gamma_ignores_the_clock(x64):
    problem = reduced.Problem(laws(np.random.default_rng(1), 4, 5), jnp.eye(4), SIZE, 4.0, ETA_Y, ETA_Z)
    u = jnp.array([0.5, 8.0])
    assert np.ptp(reduced.speed(u, problem._replace(steady=1.0))) == 0
    np.testing.assert_allclose(reduced.speed(u, problem), (SIZE - 1) ** 2 / SIZE * u / (SIZE - 1 + np.exp(u)), rtol=1e-12)
