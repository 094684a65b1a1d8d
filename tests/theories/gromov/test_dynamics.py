"""Gromov's waves and margins."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from jaxdyn.theories.gromov import model
from jaxdyn.theories.gromov.dynamics import margins, waves

# Moments of margins and the accuracy against quadrature.

TURN = 2 * np.pi


def test_margin_moments_are_integrals_over_phases(x64):
    phi, psi = np.meshgrid(*2 * [np.arange(16) * TURN / 16])  # exact for waves of order below 16
    theta, a, b, d = TURN * 3 / 11, 2, 7, 4

    def node(c):
        return (np.cos(theta * a + phi) + np.cos(theta * b + psi)) ** 2 * np.cos(theta * c + phi + psi)

    margin = node(a + b) - node(a + b + d)
    mean, variance = margins.margin_moments(jnp.array([theta]), jnp.array([float(d)]))
    assert float(mean[0, 0]) == pytest.approx(margin.mean(), rel=1e-12)
    assert float(variance[0, 0]) == pytest.approx(margin.var(), rel=1e-12)


def test_margin_moments_over_all_frequencies(x64):
    m = 13
    mean, variance = margins.margin_moments(jnp.arange(1, m) * TURN / m, jnp.array([1.0, 5.0]))
    np.testing.assert_allclose(mean.mean(1), m / (2 * (m - 1)), rtol=1e-13)
    np.testing.assert_allclose(variance.mean(1), 33 * m / (16 * (m - 1)), rtol=1e-13)


def test_constants_of_the_accuracy_are_integrals_over_phases():
    p, q = np.meshgrid(*2 * [np.arange(16) * TURN / 16])
    g = (1 + np.cos(p)) * (1 + np.cos(q))
    s, t = g * np.cos(p), g**2 / 2
    assert (s.mean(), t.mean()) == pytest.approx((margins.MEAN_S, margins.MEAN_T))
    assert (s.var(), t.var()) == pytest.approx((margins.VAR_S, margins.VAR_T))
    assert np.mean(s * t) - s.mean() * t.mean() == pytest.approx(margins.COV_ST)


@pytest.mark.parametrize("together, variance", [(True, 2305 / 5832), (False, 17 / 18)])
def test_accuracy_is_the_stated_integral(together, variance, x64):
    def share(k, m):
        def density(z):
            ratio = np.sqrt(m / (m - 1)) * (np.sqrt(2 * k) / 3 + np.sqrt(variance) * z)
            return scipy.stats.norm.pdf(z) * scipy.stats.norm.cdf(ratio) ** (m - 1)

        return scipy.integrate.quad(density, -12, 12, epsabs=1e-12)[0]

    found = margins.accuracy(jnp.array([16.0, 64.0]), 23, together=together)
    np.testing.assert_allclose(found, [share(16, 23), share(64, 23)], atol=1e-9)


# Sums of waves against the network's own logits.


def test_waves_add_up_to_the_logits_where_the_output_has_the_sum_of_the_phases(x64):
    for how in ({}, {"cycled": True}):
        nodes = model.sample_nodes(jax.random.key(3), 7, 5, **how)
        np.testing.assert_allclose(waves.waves(nodes, 7), model.logits(nodes, 7), atol=1e-12)
    free = model.sample_nodes(jax.random.key(3), 7, 5, free=True)
    assert np.max(np.abs(np.asarray(waves.waves(free, 7) - model.logits(free, 7)))) > 0.1


def test_coherent_waves_are_the_mean_over_phases(x64):
    nodes = model.sample_nodes(jax.random.key(3), 7, 5)
    phi, psi = (2 * np.pi * np.stack(np.meshgrid(np.arange(5), np.arange(5))).reshape(2, -1, 1) / 5 + 0.3) * np.ones(5)
    every = jax.vmap(lambda p, q: model.logits(model.Nodes(nodes.theta, p, q, p + q), 7))(phi, psi)
    np.testing.assert_allclose(every.mean(0), waves.coherent(nodes, 7), atol=1e-12)
