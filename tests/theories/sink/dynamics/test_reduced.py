"""The reduced flow against its closed solution for small disturbances, and its gradient against differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from jaxdyn.theories.sink.dynamics import reduced


def query(scale=1e-3, keys=16.0):
    """Four targets; disturbances of logits of a given size."""
    k_sink, k_others = jax.random.split(jax.random.key(0))
    target = jnp.array([0.1, 0.2, 0.3, 0.4])
    sink, others = jax.random.normal(k_sink, (4,), jnp.float64), jax.random.normal(k_others, (8, 4), jnp.float64)
    return reduced.Query(target, sink, scale * others, jnp.asarray(keys))


def late_of(clock, keys=16.0):
    """The margin of the closed solution from equal scores."""
    side = lambda e: e**2 / 2 + 3 * e + 3 * np.log(e) - 1 / e  # noqa: E731
    return np.log(keys * scipy.optimize.brentq(lambda e: side(e) - side(1 / keys) - clock, 1 / keys, 1e6))


@pytest.mark.slow
def test_share_and_variance(x64):
    np.testing.assert_allclose(reduced.share(0.7, 5.0), np.exp(0.7) / (np.exp(0.7) + 5), rtol=1e-12)
    target, written = np.array([0.25, 0.75]), np.array([1.0, 3.0])
    np.testing.assert_allclose(reduced.covariance(target, written, written), target @ written**2 - (target @ written) ** 2)
    one = query()
    sizes = np.linspace(-1, 1, 4001)[:, None, None] * 1e-3  # of what the value adds to all of them: the best one is part of the law
    total = [np.mean(reduced.covariance(one.target, x, x)) for x in one.others + sizes * one.sink]
    np.testing.assert_allclose(reduced.variance(one), min(total), rtol=1e-5)


def test_small_disturbances_cost_half_their_variance(x64):
    one = query()
    at = reduced.Point(jnp.asarray(0.4), jnp.asarray(2e-3))
    p = reduced.share(at.margin, one.keys)
    written = p * at.value * one.sink + (1 - p) * one.others
    floor = -jnp.sum(one.target * jnp.log(one.target))
    expected = jnp.mean(reduced.covariance(one.target, written, written)) / 2
    np.testing.assert_allclose(reduced.loss(at, one) - floor, expected, rtol=2e-3)


@pytest.mark.slow
def test_the_flow_follows_its_closed_solution(x64):
    one = query()
    sigma = float(jnp.mean(reduced.covariance(one.target, one.others, one.others)))  # of a value that stays 0
    ts = jnp.geomspace(1e-2, 1e3, 6) / sigma
    solution = jax.jit(lambda: reduced.solve(reduced.Point(jnp.zeros(()), jnp.zeros(())), one, ts, jnp.zeros(())))()
    e = np.exp(solution.ys.margin) / 16
    clock = e**2 / 2 + 3 * e + 3 * np.log(e) - 1 / e
    assert int(solution.status) == 0
    np.testing.assert_allclose(np.diff(clock), sigma * np.diff(ts), rtol=1e-2)
    late = float(reduced.late_law(1e9 / sigma, sigma, 16.0))
    np.testing.assert_allclose(late, np.log(16) + np.log(2e9) / 2)
    away = late_of(1e5) - float(reduced.late_law(1e5, 1.0, 16.0))
    np.testing.assert_allclose(-away, reduced.late_error(1e5, 1.0, 16.0), rtol=0.02)
    np.testing.assert_allclose(reduced.heuristic_law(8.0, 2.0, 1.5), 1.5 + np.log(4))
