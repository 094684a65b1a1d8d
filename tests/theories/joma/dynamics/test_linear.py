"""Closed forms of JoMA's linear activation against SciPy, mpmath and NumPy."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.metrics import stable_rank
from jaxdyn.theories.joma.dynamics import linear as theory

position, ratio_law, erfcinv, rows, limits = map(
    jax.jit, (theory.position, theory.ratio_law, theory.erfcinv, theory.rows, theory.limits)
)
velocity, blow_up_times, level_remaining = map(jax.jit, (theory.velocity, theory.blow_up_times, theory.level_remaining))
row_sum_position, row_sum_velocity = map(jax.jit, (theory.row_sum_position, theory.row_sum_velocity))
hyperbolic, softmax_velocity = map(jax.jit, (theory.hyperbolic, theory.softmax_velocity))
SEEDS = st.integers(0, 2**31 - 1)


def normals(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


def integrate(field, start, t):
    """An independent solver at its tightest."""
    shape = start.shape
    sol = scipy.integrate.solve_ivp(
        lambda _, y: field(y.reshape(shape)).ravel(), (0, t), start.ravel(), method="DOP853", rtol=1e-12, atol=1e-13
    )
    return sol.y[:, -1].reshape(shape)


def test_erfcinv_keeps_its_digits(x64):
    c = np.concatenate([10.0 ** -np.arange(1.0, 290.0, 17), np.linspace(0.02, 1.98, 41)])
    got = np.asarray(erfcinv(jnp.asarray(c)))
    with mpmath.workdps(40):
        for value, x in zip(c, got, strict=True):
            exact = mpmath.findroot(lambda y, v=value: mpmath.log(mpmath.erfc(y)) - mpmath.log(v), scipy.special.erfcinv(value))
            assert abs(x - float(exact)) <= 2e-15 * max(1.0, abs(float(exact)))


@settings(deadline=None, max_examples=8)
@given(seed=SEEDS, nodes=st.sampled_from([1, 3]), share=st.sampled_from([0.3, 0.9]), scale=st.sampled_from([0.7, 2.0]))
def test_position_solves_the_flow(seed, nodes, share, scale):
    """dV/dt = exp(c + |V|^2 / 2) Δ / A, row by row, from a general start (z0, V0)."""
    with jax.enable_x64(True):
        delta, v0, z0 = normals(seed, (5, nodes), (5, nodes), (5,))
        v0, z0 = 0.5 * v0, 0.5 * z0
        r = rows(jnp.asarray(delta), jnp.asarray(v0), jnp.asarray(z0), scale)
        c = z0 - 0.5 * (v0**2).sum(-1)

        def field(v):
            return np.exp(c + 0.5 * (v**2).sum(-1))[:, None] * delta / scale

        t = share * float(jnp.min(blow_up_times(r)))
        expected = integrate(field, v0, t)
        got = position(r, jnp.asarray(1 - share))
        np.testing.assert_allclose(got, expected, atol=1e-9)
        np.testing.assert_allclose(velocity(r, got), field(expected), rtol=1e-7, atol=1e-9)


def test_thm2_from_zero(x64):
    """erf(v/sqrt 2)/Δ is common to all tokens; blow-up at A sqrt(pi/2)/max|Δ|; the losers' limits are Δ/max Δ."""
    (delta,) = normals(3, (7, 1))
    zero = jnp.zeros((7, 1))
    r = rows(jnp.asarray(delta), zero, jnp.zeros(7), 2.0)
    t_star = 2.0 * np.sqrt(np.pi / 2) / np.abs(delta).max()
    assert float(jnp.min(blow_up_times(r))) == pytest.approx(t_star, rel=1e-14)
    np.testing.assert_allclose(limits(r), np.abs(delta[:, 0]) / np.abs(delta).max(), rtol=1e-14)
    for left in (0.5, 1e-3, 1e-9):
        v = np.asarray(position(r, jnp.asarray(left)))
        np.testing.assert_allclose(
            scipy.special.erf(v / np.sqrt(2)) / delta * t_star, (1 - left) * t_star / np.abs(delta).max(), 1e-12
        )


@pytest.mark.parametrize("level", [2.0, 6.0])
def test_level_is_reached_at_the_predicted_time(x64, level):
    delta, v0, z0 = normals(11, (6, 2), (6, 2), (6,))
    r = rows(jnp.asarray(delta), jnp.asarray(0.3 * v0), jnp.asarray(0.3 * z0))
    v = position(r, level_remaining(r, level))
    assert float(jnp.max(jnp.linalg.norm(v, axis=-1))) == pytest.approx(level, rel=1e-9)


def test_ratio_law_does_not_depend_on_the_clock(x64):
    """The law gives all rows from the winner at any time; with width 2 it does not."""
    delta, v0, z0 = normals(5, (8, 1), (8, 1), (8,))
    r = rows(jnp.asarray(delta), jnp.asarray(0.4 * v0), jnp.asarray(0.4 * z0))
    winner = int(jnp.argmin(blow_up_times(r)))
    for left in (0.9, 0.1, 1e-6):
        w = np.sum(np.asarray(position(r, jnp.asarray(left)) * r.unit), -1)
        np.testing.assert_allclose(ratio_law(r, jnp.asarray(w[winner])), w, rtol=1e-10)
    assert np.max(np.abs(np.asarray(ratio_law(r, jnp.asarray(w[winner]), 2.0)) - w)) > 0.05


def test_row_sum_form_is_the_printed_flow_and_too_fast(x64):
    (delta,) = normals(7, (4, 3))
    t = 0.15
    expected = integrate(lambda v: np.exp(0.5 * v**2).sum(-1, keepdims=True) * delta / 1.5, np.zeros((4, 3)), t)
    got = row_sum_position(jnp.asarray(delta), jnp.asarray([0.0, t]), 1.5)
    np.testing.assert_allclose(got[0], 0.0, atol=1e-12)
    np.testing.assert_allclose(got[1], expected, rtol=2e-5)
    speed = row_sum_velocity(jnp.asarray(delta), jnp.zeros((4, 3)))
    np.testing.assert_allclose(speed, 3 * delta)  # K times the gradient of the layer


def test_row_sum_form_keeps_rows_beyond_their_blow_up(x64):
    (delta,) = normals(7, (4, 3))
    held = row_sum_position(jnp.asarray(delta), jnp.asarray([1e3]))
    np.testing.assert_allclose(jnp.linalg.norm(held[0], axis=-1), 8.0)


@settings(deadline=None, max_examples=6)
@given(seed=SEEDS, nodes=st.sampled_from([1, 3]))
def test_hyperbolic_solves_linear_attention(seed, nodes):
    with jax.enable_x64(True):
        delta, v0, z0 = normals(seed, (4, nodes), (4, nodes), (4,))
        z, v = hyperbolic(jnp.asarray(delta), jnp.asarray(v0), jnp.asarray(z0), jnp.asarray(1.3))
        for row in range(4):
            matrix = np.zeros((nodes + 1, nodes + 1))
            matrix[0, 1:] = matrix[1:, 0] = delta[row]
            expected = scipy.linalg.expm(1.3 * matrix) @ np.concatenate([z0[row : row + 1], v0[row]])
            np.testing.assert_allclose(np.append(z[row], v[row]), expected, rtol=1e-10, atol=1e-12)


def test_a_token_without_saliency_stays(x64):
    delta = jnp.array([[1.0, 0.5], [0.0, 0.0], [0.3, -0.2]])
    v0 = jnp.array([[0.1, 0.2], [0.3, -0.4], [0.0, 0.0]])
    r = rows(delta, v0, jnp.zeros(3))
    v = position(r, jnp.asarray(1e-3))
    assert bool(jnp.all(jnp.isfinite(v)))
    np.testing.assert_allclose(v[1], v0[1], rtol=1e-14)


def test_rank_of_the_velocity_falls_faster_than_that_of_v(x64):
    (delta,) = normals(1, (10, 3))
    delta[0] *= 2 * np.linalg.norm(delta, axis=-1).max() / np.linalg.norm(delta[0])
    r = rows(jnp.asarray(delta), jnp.zeros((10, 3)), jnp.zeros(10))
    for left in (0.1, 0.01, 1e-4):
        v = position(r, jnp.asarray(left))
        assert float(stable_rank(velocity(r, v))) < float(stable_rank(v))
    assert float(stable_rank(velocity(r, v))) < 1 + 1e-4


def test_softmax_velocity(x64):
    delta, z, b = normals(2, (5, 2), (5,), (5,))
    b = scipy.special.softmax(b)
    got = softmax_velocity(jnp.asarray(delta), jnp.asarray(z), jnp.asarray(b), 0.5)
    np.testing.assert_allclose(got, delta * (np.exp(2 * z) / (b @ np.exp(2 * z)))[:, None], rtol=1e-12)
