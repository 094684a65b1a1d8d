"""The equations of calibration against NumPy, SciPy, mpmath and automatic differentiation."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.theories.cal import dynamics
from jaxdyn.theories.cal.model import Linear, linear_loss, regression_loss
from jaxdyn.theories.cal.spectra import linear_start, orthonormal, spectrum
from tests.theories.test_cal import solve

pytestmark = pytest.mark.usefixtures("x64")
UNBALANCED, LOGISTIC, GRAM = (jax.jit(f) for f in (dynamics.unbalanced_mode, dynamics.logistic_mode, dynamics.gram_flow))
DEEP = jax.jit(dynamics.deep_mode)
TIMES = np.array([0.3, 1.0, 4.0])


@pytest.mark.parametrize("c", [0.05, 1.0, 8.0])
def test_unbalanced_mode_solves_its_equation(c):
    s, u0 = np.array([0.7, 1.9]), np.array([0.02, 0.4])
    exact = solve(lambda u: np.sqrt(c**2 + 4 * u**2) * (s - u), u0, TIMES)
    ours = [UNBALANCED(t, s, u0, c) for t in TIMES]
    np.testing.assert_allclose(ours, exact, rtol=1e-10)


def test_unbalanced_mode_joins_the_balanced_one():
    s, u0 = np.array([0.7, 1.9]), np.array([0.02, 0.4])
    np.testing.assert_allclose(UNBALANCED(1.3, s, u0, 1e-7), LOGISTIC(1.3, s, u0), rtol=1e-9)


def test_modes_neither_overflow_nor_miss_the_target():
    s, u0 = np.array([3.0]), np.array([1e-8])
    assert float(LOGISTIC(1e6, s, u0)[0]) == 3.0
    np.testing.assert_allclose(UNBALANCED(1e6, s, u0, 0.3), s, rtol=1e-12)
    np.testing.assert_allclose(DEEP(200.0, 3.0, 0.01, 3.0), 3.0, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_deep_mode_takes_the_time_of_the_integral(n):
    s, u0, t = 1.3, 0.05, 1.7
    u = float(DEEP(t, s, u0, float(n)))
    with mpmath.workdps(30):
        elapsed = mpmath.quad(lambda x: 1 / (n * x ** (2 - mpmath.mpf(2) / n) * (s - x)), [u0, u])
    assert u0 < u < s
    assert abs(float(elapsed) - t) < 1e-11


def test_deep_mode_of_one_and_two_matrices_is_elementary():
    s, u0 = 1.3, 0.05
    one, two = (float(DEEP(2.0, s, u0, n)) for n in (1.0, 2.0))
    assert one == pytest.approx(s - (s - u0) * np.exp(-2.0), rel=1e-12)
    assert two == pytest.approx(float(LOGISTIC(2.0, np.array([s]), np.array([u0]))[0]), rel=1e-12)


@pytest.mark.thinned
@pytest.mark.parametrize(("inputs", "hidden", "outputs"), [(3, 3, 3), (2, 5, 4)])
def test_balanced_gram_solves_the_two_layer_flow(inputs, hidden, outputs):
    keys = jax.random.split(jax.random.key(inputs), 4)
    k = min(inputs, hidden, outputs)
    frames = [orthonormal(key, n, k) for key, n in zip(keys, (outputs, inputs, hidden), strict=False)]
    start = linear_start(jnp.linspace(0.1, 0.5, k), 0.0, *frames)
    m = jax.random.normal(keys[3], (outputs, inputs), jnp.float64)
    np.testing.assert_allclose(start.w1 @ start.w1.T, start.w2.T @ start.w2, atol=1e-14)
    cut = hidden * inputs

    target = np.asarray(m)

    def field(y):
        w1, w2 = y[:cut].reshape(hidden, inputs), y[cut:].reshape(outputs, hidden)
        e = target - w2 @ w1
        return np.concatenate([(w2.T @ e).ravel(), (e @ w1.T).ravel()])

    exact = solve(field, np.concatenate([np.ravel(start.w1), np.ravel(start.w2)]), TIMES)
    form = jax.jit(dynamics.balanced_gram)
    for t, y in zip(TIMES, exact, strict=True):
        q = np.concatenate([y[:cut].reshape(hidden, inputs).T, y[cut:].reshape(outputs, hidden)])
        np.testing.assert_allclose(form(t, m, start), q @ q.T, atol=1e-10)
    np.testing.assert_allclose(form(0.0, m, start)[inputs:, :inputs], start.w2 @ start.w1, atol=1e-14)


def test_symmetric_gram_is_the_printed_formula():
    rng = np.random.default_rng(0)
    m, u0, t = rng.normal(size=(5, 5)), rng.normal(size=(5, 3)), 0.8
    m = m + m.T
    grown, inverse = scipy.linalg.expm(m * t), np.linalg.inv(m)
    bracket = np.eye(3) + u0.T @ inverse @ (grown @ grown - np.eye(5)) @ u0
    printed = grown @ u0 @ np.linalg.solve(bracket, u0.T @ grown)
    np.testing.assert_allclose(jax.jit(dynamics.symmetric_gram)(t, m, u0), printed, rtol=1e-9, atol=1e-11)


def test_symmetric_gram_reaches_the_positive_part():
    m = np.diag([2.0, 1.0, 0.0, -1.0])
    u0 = np.random.default_rng(1).normal(size=(4, 4))
    late = np.asarray(jax.jit(dynamics.symmetric_gram)(300.0, m, u0))
    np.testing.assert_allclose(late[:2], [[2, 0, 0, 0], [0, 1, 0, 0]], atol=1e-12)
    assert 0 < late[2, 2] < 1 / 500, "a zero eigenvalue decays as 1 / (2t)"


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 100), first=st.floats(0.1, 3.0), second=st.floats(0.1, 3.0))
def test_gram_flow_is_a_semigroup(seed, first, second):
    with jax.enable_x64(True):
        rng = np.random.default_rng(seed)
        lam, vectors = np.linalg.eigh(np.add(*(lambda a: (a, a.T))(rng.normal(size=(4, 4)))))
        q0 = rng.normal(size=(4, 4))
        whole = np.asarray(GRAM(first + second, lam, vectors, q0, 0.5))
        half = np.linalg.cholesky(np.asarray(GRAM(first, lam, vectors, q0, 0.5)) + 1e-15 * np.eye(4))
        np.testing.assert_allclose(GRAM(second, lam, vectors, half, 0.5), whole, rtol=1e-6, atol=1e-8)


def test_effective_starts_of_an_aligned_start_are_its_own():
    keys = jax.random.split(jax.random.key(0), 4)
    u, v, r = (orthonormal(k, 5, 3) for k in keys[:3])
    strength = jnp.array([1e-3, 2e-3, 5e-4])
    np.testing.assert_allclose(dynamics.effective_starts(u, v, linear_start(strength, 0.0, u, v, r)), strength, rtol=1e-10)
    values = np.asarray(spectrum(keys[3], 3, 0.5, 3.5))
    assert np.all(np.diff(values) < -0.4) and values.min() > 0.5 and values.max() < 3.5


COVARIANCE_AFTER, STATIONARY_COVARIANCE, DIFFUSION_COVARIANCE, MEAN_AFTER, DECAY_RATE = (
    jax.jit(f)
    for f in (
        dynamics.covariance_after,
        dynamics.stationary_covariance,
        dynamics.diffusion_covariance,
        dynamics.mean_after,
        dynamics.decay_rate,
    )
)


def test_noise_statistics_follow_the_recursion():
    rng = np.random.default_rng(0)
    vectors, h, eta = np.linalg.qr(rng.normal(size=(3, 3)))[0], np.array([0.4, 1.1, 2.9]), 0.5
    mix = rng.normal(size=(3, 3))
    hessian, c = vectors @ np.diag(h) @ vectors.T, mix @ mix.T
    one, s = np.eye(3) - eta * hessian, np.zeros((3, 3))
    for n in range(1, 6):
        s = one @ s @ one + eta**2 * c
        np.testing.assert_allclose(COVARIANCE_AFTER(n, eta, h, vectors, c), s, rtol=1e-11)
    stationary = np.asarray(STATIONARY_COVARIANCE(eta, h, vectors, c))
    np.testing.assert_allclose(one @ stationary @ one + eta**2 * c, stationary, rtol=1e-11)
    equation = hessian @ stationary + stationary @ hessian - eta * hessian @ stationary @ hessian
    np.testing.assert_allclose(equation, eta * c, rtol=1e-10, atol=1e-12)
    diffusion = np.asarray(DIFFUSION_COVARIANCE(eta, h, vectors, c))
    np.testing.assert_allclose(hessian @ diffusion + diffusion @ hessian, eta * c, rtol=1e-10, atol=1e-12)


def test_stationary_variance_of_the_reference():
    one = jnp.ones((1, 1))
    assert float(STATIONARY_COVARIANCE(0.2, jnp.array([1.3]), one, 0.25 * one)[0, 0]) == pytest.approx(0.022104, abs=5e-7)


def test_means_and_rates_on_both_sides_of_the_edge():
    h, x0, eta = np.array([0.05, 1.0, 1.9, 3.1]), np.array([1.0, 2.0, -1.0, 0.5]), 0.8
    for n in (0, 1, 2, 7):
        np.testing.assert_allclose(MEAN_AFTER(n, eta, h, x0), (1 - eta * h) ** n * x0, rtol=1e-12)
    rate = np.asarray(DECAY_RATE(eta, h))
    np.testing.assert_allclose(rate, -np.log(np.abs(1 - eta * h)) / eta, rtol=1e-12)
    assert np.array_equal(rate > 0, eta * h < 2)
    assert float(DECAY_RATE(1e-9, jnp.array([2.0]))[0]) == pytest.approx(2 * (1 + 1e-9), rel=1e-12)


@pytest.mark.parametrize(("u", "v"), [(3.0, 0.2), (2.6, 0.1)])
def test_final_sharpness_of_the_scalar_problem(u, v):
    """Plain gradient descent at three small steps: its extrapolated end and the slope of its end in the step size."""
    ends = {}
    for eta in (0.004, 0.002, 0.001):
        a, b = u, v
        for _ in range(round(6 / eta)):
            r = a * b - 1
            a, b = a - eta * r * b, b - eta * r * a
        ends[eta] = a * a + b * b
    limit, slope = 2 * ends[0.001] - ends[0.002], (ends[0.002] - ends[0.001]) / 0.001
    coarse = (ends[0.004] - ends[0.002]) / 0.002
    assert float(dynamics.flow_sharpness(u, v)) == pytest.approx(limit, abs=5e-6)
    assert float(dynamics.flattening(u, v)) == pytest.approx(2 * slope - coarse, rel=1e-3)
    assert float(dynamics.flow_sharpness(3.0, 0.2)) == pytest.approx(9.1805, abs=5e-5)


def random_linear(seed, hidden=4, inputs=3, outputs=2):
    rng = np.random.default_rng(seed)
    shapes = (hidden, inputs), (outputs, hidden), (outputs, inputs)
    w1, w2, m = (jnp.asarray(rng.normal(size=s)) for s in shapes)
    return Linear(w1, w2), m


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_field_is_the_negative_gradient_of_the_network(decay):
    p, m = random_linear(0)
    fields = jax.jit(lambda q: (dynamics.linear_field(m, decay)(q), jax.grad(linear_loss)(q, m, decay)))
    for ours, g in zip(*fields(p), strict=True):
        np.testing.assert_allclose(ours, -g, rtol=1e-12, atol=1e-13)


def test_modified_field_is_the_negative_gradient_of_the_modified_loss():
    p, m = random_linear(1)

    def modified(q):
        return linear_loss(q, m) + 0.25 * 0.07 * sum(jnp.sum(g**2) for g in jax.grad(linear_loss)(q, m))

    fields = jax.jit(lambda q: (dynamics.modified_field(dynamics.linear_field(m), 0.07)(q), jax.grad(modified)(q)))
    for ours, g in zip(*fields(p), strict=True):
        np.testing.assert_allclose(ours, -g, rtol=1e-11, atol=1e-12)


def test_shuffled_field_is_the_negative_gradient_of_its_loss():
    p, _ = random_linear(2)
    rng = np.random.default_rng(3)
    x, y, eta = jnp.asarray(rng.normal(size=(4, 2, 3))), jnp.asarray(rng.normal(size=(4, 2, 2))), 0.05

    def modified(q):
        losses = [regression_loss(q, batch) for batch in zip(x, y, strict=True)]
        slopes = [sum(jnp.sum(g**2) for g in jax.grad(regression_loss)(q, batch)) for batch in zip(x, y, strict=True)]
        return sum(losses) / 4 + eta / 16 * sum(slopes)

    xx, yx = jnp.einsum("mbi,mbj->mij", x, x) / 2, jnp.einsum("mbo,mbi->moi", y, x) / 2
    fields = jax.jit(lambda q: (dynamics.shuffled_field(xx, yx, eta)(q), jax.grad(modified)(q)))
    for ours, g in zip(*fields(p), strict=True):
        np.testing.assert_allclose(ours, -g, rtol=1e-11, atol=1e-12)


def test_balance_rate_is_exact_for_one_step():
    p, m = random_linear(4)
    eta, g = 0.3, jax.grad(linear_loss)(p, m)
    after = Linear(p.w1 - eta * g.w1, p.w2 - eta * g.w2)
    change = dynamics.balance(after) - dynamics.balance(p)
    np.testing.assert_allclose(change, eta**2 * dynamics.balance_rate(p, m), atol=1e-12)
    assert np.abs(change).max() > 0.1


def test_leading_error_of_the_scalar_problem():
    """Flow and leading error of (uv - 1)^2 / 2 from (1.5, 0.2) at t = 1, from an explicit Hessian in NumPy."""

    def field(y):
        u, v, *e = y
        f = -(u * v - 1) * np.array([v, u])
        h = np.array([[v * v, 2 * u * v - 1], [2 * u * v - 1, u * u]])
        return np.concatenate([f, -h @ e + 0.5 * h @ f])

    y = solve(field, [1.5, 0.2, 0, 0], np.array([1.0]))[0]
    np.testing.assert_allclose(y, [1.6011336, 0.5946670, -0.0251584, 0.1164147], atol=1e-7)
    state = Linear(jnp.full((1, 1), 0.2), jnp.full((1, 1), 1.5))
    joint = dynamics.Flows(state, Linear(jnp.full((1, 1), 0.3), jnp.full((1, 1), -0.1)), state, jnp.zeros((1, 1)))
    out = dynamics.flows_field(0.0, joint, dynamics.FlowsArgs(jnp.ones((1, 1)), 0.1, 0.0))
    expected = field(np.array([1.5, 0.2, -0.1, 0.3]))
    np.testing.assert_allclose([out.flow.w2, out.flow.w1, out.lead.w2, out.lead.w1], expected.reshape(4, 1, 1), rtol=1e-12)
