"""JoMA's dynamics with many nodes, against SciPy's solver and the equation of their limits."""

import jax
import numpy as np
import pytest
import scipy.integrate

from jaxdyn.theories.joma.dynamics import lowrank

pytestmark = pytest.mark.usefixtures("x64")


def solved(field, start, ts):
    out = scipy.integrate.solve_ivp(lambda t, v: field(v.reshape(start.shape)).ravel(), (0, ts[-1]), start.ravel(), t_eval=ts,
                                    rtol=1e-10, atol=1e-12)  # fmt: skip
    return out.y.T.reshape(len(ts), *start.shape)


def test_rows_under_an_inserted_gradient():
    mu, ts = np.random.default_rng(0).normal(size=(4, 3)), np.linspace(0, 2, 5)
    v, rate = jax.jit(lowrank.inserted)(mu, ts)

    def field(v):
        return np.exp(0.5 * (v**2).sum(-1, keepdims=True)) * (mu - v)

    np.testing.assert_allclose(v, solved(field, np.zeros((4, 3)), ts), atol=1e-7)
    np.testing.assert_allclose(rate, [field(x) for x in np.asarray(v)], atol=1e-10)


@pytest.mark.slow
def test_rows_under_squared_error_and_their_limits():
    rng = np.random.default_rng(1)
    start, y, p, ts = (
        0.1 * rng.normal(size=(4, 3)),
        2 * rng.normal(size=(4, 3)),
        np.array([0.1, 0.2, 0.3, 0.4]),
        np.linspace(0, 60, 4),
    )

    def field(v):
        gain = np.exp(0.5 * ((v**2).sum(-1) - (start**2).sum(-1)))[:, None]
        return p[:, None] * gain * (y - gain * v)

    solution, rate = jax.jit(lowrank.trained)(start, y, p, ts)
    np.testing.assert_allclose(solution.ys, solved(field, start, ts), atol=1e-6)
    np.testing.assert_allclose(rate, [field(x) for x in np.asarray(solution.ys)], atol=1e-9)
    mu = np.asarray(lowrank.limits(y))
    np.testing.assert_allclose(np.exp(0.5 * (mu**2).sum(-1, keepdims=True)) * mu, y, rtol=1e-10)


def test_without_learned_attention_the_rank_of_even_shares_stays():
    rng = np.random.default_rng(2)
    y = rng.normal(size=(4, 3))
    rate = np.asarray(lowrank.unattended(np.zeros((4, 3)), y, np.full(4, 0.25), np.array([0.0, 3.0])))
    np.testing.assert_allclose(rate[1], np.exp(-0.75) * rate[0])
    np.testing.assert_allclose(rate[0], 0.25 * y)
