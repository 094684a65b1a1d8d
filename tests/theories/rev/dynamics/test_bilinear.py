"""Closed forms of the bilinear model against SciPy."""

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

from jaxdyn.theories.rev.dynamics import bilinear as bilinear_theory
from tests.theories.rev.helpers import numpy_losses


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
