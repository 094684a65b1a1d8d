"""The two numbers of the answering layer: rates by finite differences of the loss, leading terms, the limit of the direction."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.emer import published
from jaxdyn.theories.emer.dynamics import answer


def loss(mu_a, mu_r, n, k, reachable):
    xi = np.zeros(n)
    xi[:k] += mu_a / k**0.5
    xi[0] += mu_r
    xi[-1] += mu_r
    return np.log(np.exp(xi).sum()) - xi[0 if reachable else -1]


@pytest.mark.parametrize("reachable", [True, False])
def test_rates_descend_the_loss(reachable, x64):
    law, h, (a, r) = answer.Law(7.0, 4.0, 0.3, 2.0, float(reachable)), 1e-6, (0.8, -0.4)
    slope_a = (loss(a + h, r, 7, 4, reachable) - loss(a - h, r, 7, 4, reachable)) / 2 / h
    slope_r = (loss(a, r + h, 7, 4, reachable) - loss(a, r - h, 7, 4, reachable)) / 2 / h
    np.testing.assert_allclose(answer.field(0.0, jnp.asarray([a, r]), law), [-0.3 * slope_a, -2.0 * slope_r], rtol=1e-6)


@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_leading_terms_and_direction(rate, x64):
    law = answer.Law(7.0, 4.0, rate, 1.0, True)
    ts = jnp.asarray([0.0, 1e11, 1e12])
    ys = answer.solve(law, ts).ys
    np.testing.assert_allclose(ys[-1], answer.asymptote(law, ts)[:, -1], rtol=1e-6)
    np.testing.assert_allclose((ys[-1] - ys[-2])[0] / (ys[-1] - ys[-2])[1], 2.0, rtol=1e-6)


def test_the_ratio_is_late(x64):
    ts = jnp.asarray([0.0, *published.RATIOS])
    ys = answer.solve(answer.Law(23.0, 9.0, 1.0, 1.0, True), ts).ys
    np.testing.assert_allclose((ys[1:, 0] / ys[1:, 1]), list(published.RATIOS.values()), atol=0.006)
