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
