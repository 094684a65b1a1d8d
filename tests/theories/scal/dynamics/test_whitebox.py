"""The loss of the linear model against direct sums, a number checked independently, and its limits."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import zeta

from jaxdyn.theories.scal.dynamics import whitebox

P, Q = 1.5, 1.75


def test_the_loss_against_a_direct_sum(x64):
    j = np.arange(1, 1_000_001.0)
    tail = zeta(Q, j.size + 1)
    for rate, decay in ((0.0, np.exp(-2 * j**-P * 100.0)), (0.5, (1 - 0.5 * j**-P) ** 400)):
        whole = [np.sum(j[:n] ** -Q * decay[:n]) + np.sum(j[n:] ** -Q) + tail for n in (8, 64)]
        np.testing.assert_allclose(whitebox.loss(jnp.array([8, 64]), 100.0, P, Q, rate), whole, rtol=1e-12)
    limits = whitebox.late(64, Q) + whitebox.large(100.0, P, Q)
    assert float(whitebox.loss(jnp.array([64]), 100.0, P, Q)[0]) == pytest.approx(0.0903, abs=5e-5)
    assert float(limits) == pytest.approx(0.1425, abs=2e-4)


def test_the_limits(x64):
    sizes = jnp.array([64, 512])
    np.testing.assert_allclose(whitebox.loss(sizes, 1e12, P, Q), whitebox.late(sizes + 0.5, Q), rtol=1e-4)
    assert float(whitebox.large(100.0, P, Q)) == pytest.approx(float(whitebox.loss(jnp.array([2048]), 100.0, P, Q)[0]), rel=0.01)
    assert whitebox.exponent(1.5) == 0.4
