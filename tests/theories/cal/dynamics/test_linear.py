"""Exact solutions of linear networks against NumPy, SciPy and mpmath."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.theories.cal.dynamics import linear
from jaxdyn.theories.cal.spectra import linear_start, orthonormal, spectrum
from tests.theories.cal.helpers import solve

pytestmark = pytest.mark.usefixtures("x64")
UNBALANCED, LOGISTIC, GRAM = (jax.jit(f) for f in (linear.unbalanced_mode, linear.logistic_mode, linear.gram_flow))
DEEP = jax.jit(linear.deep_mode)
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


@pytest.mark.parametrize(("inputs", "hidden", "outputs"), [(3, 3, 3), (2, 5, 4)])
def test_balanced_product_solves_the_two_layer_flow(inputs, hidden, outputs):
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
    form = jax.jit(linear.balanced_product)
    for t, y in zip(TIMES, exact, strict=True):
        product = y[cut:].reshape(outputs, hidden) @ y[:cut].reshape(hidden, inputs)
        np.testing.assert_allclose(form(t, m, start), product, atol=1e-10)
    np.testing.assert_allclose(form(0.0, m, start), start.w2 @ start.w1, atol=1e-14)


def test_symmetric_gram_is_the_printed_formula():
    rng = np.random.default_rng(0)
    m, u0, t = rng.normal(size=(5, 5)), rng.normal(size=(5, 3)), 0.8
    m = m + m.T
    grown, inverse = scipy.linalg.expm(m * t), np.linalg.inv(m)
    bracket = np.eye(3) + u0.T @ inverse @ (grown @ grown - np.eye(5)) @ u0
    printed = grown @ u0 @ np.linalg.solve(bracket, u0.T @ grown)
    np.testing.assert_allclose(jax.jit(linear.symmetric_gram)(t, m, u0), printed, rtol=1e-9, atol=1e-11)


def test_symmetric_gram_reaches_the_positive_part():
    m = np.diag([2.0, 1.0, 0.0, -1.0])
    u0 = np.random.default_rng(1).normal(size=(4, 4))
    late = np.asarray(jax.jit(linear.symmetric_gram)(300.0, m, u0))
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
    np.testing.assert_allclose(linear.effective_starts(u, v, linear_start(strength, 0.0, u, v, r)), strength, rtol=1e-10)
    values = np.asarray(spectrum(keys[3], 3, 0.5, 3.5))
    assert np.all(np.diff(values) < -0.4) and values.min() > 0.5 and values.max() < 3.5
