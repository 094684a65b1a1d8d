"""Codes on the hypercube and spectral norms."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special

from jaxdyn.theories.hyper.dynamics import codes, spectral

# Closed forms of losses against Bessel functions, sums over codewords, and the values of the theory.


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("temperature", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("dims", [2, 5, 20, 100])
def test_sphere_against_bessel_functions(dims, temperature):
    order, x = dims / 2 - 1, 1 / temperature
    log = scipy.special.gammaln(dims / 2) + order * np.log(2 * temperature) + np.log(scipy.special.ive(order, x)) + x
    np.testing.assert_allclose(codes.sphere_moment(dims, temperature), np.exp(log), rtol=1e-10)


def test_moments_against_sums_over_codewords():
    words = np.array(list(itertools.product([-1, 1], repeat=4))) / 2
    similar = np.exp((words @ words.T) / 0.5)
    np.testing.assert_allclose(codes.bit_moment(4.0, 0.5), similar.mean(), rtol=1e-12)
    np.testing.assert_allclose(codes.bit_variance(4.0, 0.5), similar.var(), rtol=1e-12)
    eye = np.eye(6)
    np.testing.assert_allclose(codes.one_hot_moment(6.0, 0.5), np.exp(2 * eye).mean(), rtol=1e-12)
    simplex = (eye - 1 / 6) / np.sqrt(5 / 6)
    np.testing.assert_allclose(codes.simplex_moment(6.0, 0.5), np.exp(2 * simplex @ simplex.T).mean(), rtol=1e-12)


@pytest.mark.parametrize(("negatives", "temperature"), [(6.0, 0.5), (60.0, 0.25)])
def test_jensen_against_a_spread_of_the_sum(negatives, temperature):
    moment, variance = 2.5, 3.0
    centre = negatives * moment + np.exp(1 / temperature)
    spread = 1e-3 * np.sqrt(2 * negatives * variance)  # every similarity counts twice; small, so that higher orders vanish
    below = np.log(centre) - np.mean(np.log(centre + spread * np.array([-1, 1])))
    np.testing.assert_allclose(codes.jensen(negatives, moment, variance, temperature), below / 1e-6, rtol=1e-4)


def test_values_of_the_paper_s_scale():
    def loss(c):
        return float(codes.loss(1022.0, c, 0.5))

    assert loss(codes.bit_moment(10.0, 0.5)) == pytest.approx(5.1341, abs=5e-5)
    below = codes.jensen(1022.0, codes.bit_moment(10.0, 0.5), codes.bit_variance(10.0, 0.5), 0.5)
    assert loss(codes.bit_moment(10.0, 0.5)) - float(below) == pytest.approx(5.13366, abs=1e-5)
    found = [round(loss(codes.sphere_moment(d, 0.5)), 4) for d in (10, 16, 20, 32, 50, 100)]
    assert found == [5.1322, 5.06, 5.0356, 4.9987, 4.9764, 4.9566]
    assert [round(loss(f(1024.0, 0.5)), 4) for f in (codes.one_hot_moment, codes.simplex_moment)] == [4.9429, 4.941]
    assert loss(jnp.float64(1)) == pytest.approx(4.9367, abs=5e-5)


@pytest.mark.parametrize("bits", [3, 5])
@pytest.mark.parametrize("temperature", [0.3, 2.0])
def test_the_sign_of_a_little_irrelevant_weight(bits, temperature):
    e, tau = 1e-3, (np.arange(40) + 0.5) / 40
    words = np.array(list(itertools.product([-1, 1], repeat=bits)))
    s = words @ words[0] / bits  # similarities of independent points
    first, second = np.meshgrid(tau, tau)
    size = np.sqrt((1 + e * first**2) * (1 + e * second**2))
    u = np.array([-1.0, 1.0])[:, None, None, None]  # one irrelevant bit against another
    negative = np.exp((s[:, None, None] + e * u * first * second) / size / temperature).mean()
    positive = (1 + e * first * second) / size / temperature

    def loss(negative, positive):
        return np.mean(np.log(62 * negative + np.exp(positive)) - positive)

    change = loss(negative, positive) - loss(np.exp(s / temperature).mean(), np.array(1 / temperature))
    assert np.sign(change) == -np.sign(float(codes.critical(bits, temperature)))


# The minimum against a search over random matrices' descent, the logistic against its equation.


@pytest.mark.parametrize(("encoder", "least"), [(2, -2.0), (4, -3 - 0.75**2), (8, -3 - 3 * 0.75**2)])
def test_minimum_against_descent(encoder, least):
    with jax.enable_x64(True):
        plus, both = (np.asarray(x) for x in spectral.correlations(6, 3, 0.5, 1 / 3))
        assert float(spectral.minimum(6, 3.0, encoder, 0.5, 1 / 3)) == pytest.approx(least, abs=1e-12)

    def loss(flat):
        w = flat.reshape(encoder, 6)
        return -2 * np.sum(w * w * plus) + np.sum(((w * both) @ w.T) ** 2)

    start = np.random.default_rng(0).normal(size=encoder * 6)
    assert scipy.optimize.minimize(loss, start, tol=1e-12).fun == pytest.approx(least, abs=1e-6)


def test_logistic_obeys_its_equation():
    with jax.enable_x64(True):
        plus, both, start = jnp.array([1.0, 0.25]), jnp.array([1.0, 1 / 3]), jnp.array([0.01, 0.02])
        ts = jnp.linspace(0.0, 2.0, 2001)
        p = np.asarray(spectral.logistic(start, plus, both, ts))
        slope = 8 * (plus * p - both**2 * p**2)
    np.testing.assert_allclose(p[0], start)
    np.testing.assert_allclose((p[2:] - p[:-2]) / 2e-3, slope[1:-1], atol=3e-4)  # third derivative times h^2/6
