"""Closed gradients against finite differences, mpmath and NumPy."""

import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.theories.snap.dynamics import clock
from jaxdyn.theories.snap.dynamics import gradient as theory
from tests.theories.snap.helpers import small_case

M = 6
ascent = jax.jit(theory.ascent)


def objective(y, z, p, query, label, weight):
    """J at infinite length, in NumPy."""
    total = 0.0
    for n in range(len(p)):
        c = p[n] * np.exp(z[query[n]])
        f = c / np.sqrt((c**2).sum())
        logits = y.T @ f
        total += weight[n] * (logits[label[n]] - np.log(np.exp(logits).sum()))
    return total


def slope(f, x, h=1e-6):
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = h
        out[i] = (f(x + step) - f(x - step)) / (2 * h)
    return out


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_ascent_is_the_slope_of_the_objective(seed):
    y, z, *rest = small_case(seed)
    with jax.enable_x64(True):
        dy, dz = ascent(y, z, *rest)
    assert np.allclose(dy, slope(lambda a: objective(a, z, *rest), y), atol=2e-9)
    assert np.allclose(dz, slope(lambda a: objective(y, a, *rest), z), atol=2e-9)
    assert np.allclose(np.asarray(dy).sum(1), 0, atol=1e-14) and np.allclose(np.asarray(dz).sum(1), 0, atol=1e-14)


def test_one_sequence_is_its_counts(x64):
    y, z, *_ = (jnp.asarray(a) for a in small_case(1))
    ids = np.array([0, 3, 3, 1, 5, 3])
    by_position = jax.jit(theory.sample_ascent)(y, z, jnp.asarray(np.eye(M)[ids]), 1, 4)
    counts = jnp.asarray(np.bincount(ids, minlength=M), jnp.float64)[None]
    one = jnp.asarray([1])
    by_count = ascent(y, z, counts, one, jnp.asarray([4]), jnp.ones(1))
    for a, b in zip(by_position, by_count, strict=True):
        assert np.allclose(a, b, rtol=1e-12, atol=1e-15)


def test_theorem_1_from_a_decoder_that_is_a_clock(x64):
    """The gradient of the decoder Y = F h (M E - 1) has the form of Theorem 1, with gamma, iota and beta as derived."""
    size, u = 12, 1.7
    f = theory.unit(jnp.asarray(np.kron(np.eye(3), [[1.0, 2.0, 0.5]])))
    f = jnp.concatenate([f, jnp.zeros((3, size - 9))], 1)
    label = np.array([9, 10, 11])
    y = f.T @ (u / size * (size * np.eye(size)[label] - 1))
    got = theory.backpropagated(y, f, label)
    assert np.allclose(got, theory.gradient_form(f, jnp.float64(u), size), rtol=1e-12, atol=1e-15)
    assert float(theory.excess(f)) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("size", [2, 40, 10_000])
def test_peak_of_gamma(x64, size):
    with mpmath.workdps(30):
        u = mpmath.findroot(lambda u: mpmath.exp(u) * (u - 1) - (size - 1), mpmath.log(size) + 0.3)
    assert theory.peak(size) == pytest.approx(float(u), rel=1e-13)
    near = theory.gamma(theory.peak(size) + jnp.asarray([-1e-3, 0.0, 1e-3]), size)
    assert near[1] > near[0] and near[1] > near[2]


def test_published_numbers_of_the_peak(x64):
    u = theory.peak(10_000)
    assert u == pytest.approx(7.3602, abs=5e-5)
    assert float(theory.time_at(u, 10_000.0, 1.0, 1.0)) == pytest.approx(7.5166, abs=5e-5)
    assert float(theory.gamma(jnp.float64(u), 10_000.0)) == pytest.approx(6.3595, abs=5e-5)


def test_integral_of_gamma_and_the_inverse_clock(x64):
    size, classes, eta, t = 40.0, 3.0, 0.7, 25.0
    with mpmath.workdps(20):

        def gamma(time):
            u = mpmath.findroot(lambda u: (size - 1) * u + mpmath.expm1(u) - size * eta * time / classes, 1.0 + mpmath.log1p(time))
            return (size - 1) ** 2 / size * u / (size - 1 + mpmath.exp(u))

        want = float(mpmath.quad(gamma, [0, 5, 12, t]))
    u = clock.clock(size * eta * t / classes, size)
    assert float(theory.gamma_integral(u, size, classes, eta)) == pytest.approx(want, rel=1e-10)
    assert float(theory.time_at(u, size, classes, eta)) == pytest.approx(t, rel=1e-13)


def test_xi_counts_the_other_classes(x64):
    f = theory.unit(jnp.asarray(np.random.default_rng(0).random((3, 5))))
    u = jnp.float64(2.0)
    brute = [sum(f[n] @ f[k] for k in range(3) if k != n) for n in range(3)]
    assert np.allclose(theory.xi(f, u, 30.0), theory.gamma(u, 30.0) * 30 / 29**2 * np.array(brute), rtol=1e-13)


def test_spread_is_the_variance_of_all_short_sequences(x64):
    """Leading order against the exact mean over every multinomial count, at two lengths: the error falls like 1/T."""
    p, z = np.array([0.5, 0.3, 0.2]), np.array([0.3, -0.5, 0.1])
    c = np.asarray(theory.attention(jnp.asarray(z), jnp.asarray(p)))
    assert np.allclose(c, p * np.exp(z) / (p * np.exp(z)).sum(), rtol=1e-14)
    errors = []
    for total in (20, 40):
        exact = 0.0
        for a, b in itertools.product(range(total + 1), repeat=2):
            if a + b <= total:
                k = np.array([a, b, total - a - b])
                log_chance = float(mpmath.loggamma(total + 1) - sum(mpmath.loggamma(x + 1) for x in k)) + k @ np.log(p)
                e = k * np.exp(z)
                exact += np.exp(log_chance) * ((e / e.sum() - c) ** 2).sum()
        errors.append(float(theory.spread(jnp.asarray(z), jnp.asarray(p), jnp.asarray([float(total)]))[0]) ** 2 / exact - 1)
    assert abs(errors[0]) < 0.1 and abs(errors[1]) == pytest.approx(abs(errors[0]) / 2, rel=0.2)
