"""The reversal curse's equations: the bilinear model and the one-layer transformer."""

import mpmath
import numpy as np
import pytest
import scipy.integrate

from jaxdyn.theories.rev.dynamics import bilinear as bilinear_theory
from jaxdyn.theories.rev.dynamics import one_layer as theory
from tests.theories.rev.helpers import numpy_losses

# Closed forms of the bilinear model against SciPy.


def test_orthonormal_closed_form(x64):
    n, m = 2, 6
    t = np.array([0.0, 1.0, 10.0, 100.0])

    def rate(_, flat):
        w = flat.reshape(m, m)
        g = np.zeros((m, m))
        for i in range(n):
            g[i] = np.exp(w[i]) / np.exp(w[i]).sum() / n
            g[i, n + i] -= 1 / n
        return -g.ravel()

    path = scipy.integrate.solve_ivp(rate, (0, 100), np.zeros(m * m), t_eval=t, rtol=1e-10, atol=1e-12).y.T.reshape(-1, m, m)
    losses = [numpy_losses(w, n) for w in path]
    np.testing.assert_allclose(bilinear_theory.orthonormal_loss(t, m, n), [x for x, _ in losses], rtol=1e-7)
    np.testing.assert_allclose([x for _, x in losses], np.log(m), rtol=1e-12)


def test_orthonormal_loss_at_the_reference_point(x64):
    np.testing.assert_allclose(bilinear_theory.orthonormal_loss(1000.0, 20, 5), 0.0049303775, rtol=1e-7)
    assert bilinear_theory.half_guess(20) == pytest.approx(2.302585)
    np.testing.assert_allclose(bilinear_theory.reverse_floor(3.0, 0.01, 0.5), 0.3)


def first_exponents(n, m, d, draws):
    """Of Gaussian tokens, from the gradients of both losses at W = 0, where they are equal."""
    v = np.random.default_rng(0).normal(size=(draws, m, d)) / np.sqrt(d)
    gram, pair = v @ v.transpose(0, 2, 1), np.arange(n)
    forward, reverse = np.full((2, n, m), 1 / (m * n))
    forward[pair, n + pair] -= 1 / n
    reverse[pair, pair] -= 1 / n
    move = -(gram[:, : 2 * n, :n] @ forward @ gram)
    return np.sum(reverse * move[:, n:], (1, 2)) / np.sum(forward * move[:, :n], (1, 2))


def test_first_exponent_of_gaussian_tokens():
    m, d, draws = 20, 100, 1000
    mean, sd = bilinear_theory.first_exponent(m, d)
    for n in (3, 10):
        measured = first_exponents(n, m, d, draws)
        assert abs(measured.mean() - mean) < 0.1 * mean + 4 * sd / np.sqrt(draws)  # next order 1/m, and four standard errors
        assert abs(measured.std() / sd - 1) < 0.1 + 4 / np.sqrt(2 * draws)


def test_mean_rise_of_the_reverse_loss(x64):
    """Rows that have gained exactly what training gives them, seen through the overlaps of Gaussian tokens."""
    n, m, d, draws, final = 20, 80, 100, 200, 0.01
    a, pair = (1 - 1 / m) * np.log((m - 1) / np.expm1(final)), np.arange(n)
    v = np.random.default_rng(1).normal(size=(draws, m, d)) / np.sqrt(d)
    gained = np.full((n, m), -a / (m - 1))
    gained[pair, n + pair] = a
    loss = np.log(1 + (m - 1) * np.exp(-(a + a / (m - 1))))
    assert loss == pytest.approx(final)
    w = (v[:, n : 2 * n] @ v[:, :n].transpose(0, 2, 1)) @ gained @ (v @ v.transpose(0, 2, 1))
    rise = np.mean(np.log(np.exp(w).sum(-1)) - w[:, pair, pair], 1) - np.log(m)
    law = float(bilinear_theory.mean_rise(final, n, m, float(d)))
    assert law > 0.1 and abs(rise.mean() - law) < 0.1 * law + 4 * rise.std() / np.sqrt(draws)
    assert float(bilinear_theory.mean_rise(final, n, m, 1e9)) == pytest.approx(0, abs=1e-6)


# Bounds, exponents and entries of a row against mpmath and a replay.

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
