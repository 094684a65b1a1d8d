"""The diagonal network and its gradient flow against NumPy and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from jaxdyn import flow
from jaxdyn.theories.lyu import model


def drawn(seed=0, count=6, inputs=10, active=2):
    return model.sample(jax.random.key(seed), count, inputs, active)


def test_samples_are_made_by_a_sparse_weight(x64):
    data = drawn()
    assert np.count_nonzero(data.truth) == 2 and set(np.abs(data.truth)) == {0.0, 1.0}
    np.testing.assert_allclose(data.x @ data.truth, data.y)
    assert np.var(np.asarray(drawn(count=400, inputs=40).x)) == pytest.approx(2 / 40, rel=0.05)


def test_loss_is_the_stated_one_and_the_output_starts_at_zero(x64):
    data, start = drawn(), model.init(3.0, 10)
    assert not np.any(model.weight(start))
    u, v = np.arange(10) / 5, np.ones(10) / 3
    residual = np.asarray(data.x) @ (u**2 - v**2) - np.asarray(data.y)
    slow = np.mean(residual**2) + 0.05 * (u @ u + v @ v)
    assert float(model.loss(model.Params(jnp.asarray(u), jnp.asarray(v)), data, 0.1)) == pytest.approx(slow, rel=1e-13)


def test_flow_is_scipys_and_its_product_decays(x64):
    data, lam, alpha = drawn(), 0.05, 2.0
    x, y, times = np.asarray(data.x), np.asarray(data.y), np.linspace(0, 40, 9)

    def field(_, theta):
        u, v = theta[:10], theta[10:]
        g = 2 / len(y) * x.T @ (x @ (u**2 - v**2) - y)
        return np.concatenate([-lam * u - 2 * u * g, -lam * v + 2 * v * g])

    slow = scipy.integrate.solve_ivp(field, (0, 40), np.full(20, alpha), t_eval=times, rtol=1e-10, atol=1e-12, method="LSODA").y
    found = flow.gradient_flow(model.loss, model.init(alpha, 10), times, data, lam, solver="kvaerno5", rtol=1e-8)
    np.testing.assert_allclose(np.concatenate(found.ys, 1), slow.T, rtol=2e-6)
    expected = np.broadcast_to(alpha**2 * np.exp(-2 * lam * times)[:, None], (9, 10))
    np.testing.assert_allclose(found.ys.u * found.ys.v, expected, rtol=2e-6)
