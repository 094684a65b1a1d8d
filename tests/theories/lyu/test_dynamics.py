"""The entropic path against its two ends and a minimiser, the least-norm programme against SciPy's solver."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from jaxdyn.theories.lyu import model
from jaxdyn.theories.lyu.dynamics import path as theory
from jaxdyn.theories.lyu.dynamics import sparse


def drawn(seed=0, count=6, inputs=10, active=2):
    return model.sample(jax.random.key(seed), count, inputs, active)


def test_path_interpolates_and_minimises_the_entropy(x64):
    data, scales = drawn(), jnp.array([5.0, 1.0, 0.3])
    path = np.asarray(jax.jit(theory.path)(data, scales))
    np.testing.assert_allclose(path @ np.asarray(data.x).T, np.broadcast_to(data.y, (3, 6)), atol=1e-10)
    null = np.linalg.svd(np.asarray(data.x))[2][6:]

    def entropy(c, scale, w):
        w = w + c @ null
        r = w / (2 * scale**2)
        return np.sum(w * np.arcsinh(r) - 2 * scale**2 * np.sqrt(1 + r**2)), null @ np.arcsinh(r)

    for scale, w in zip(np.asarray(scales), path, strict=True):
        best = scipy.optimize.minimize(entropy, np.full(4, 0.1), (scale, w), jac=True, tol=1e-9)
        np.testing.assert_allclose(best.x, 0, atol=1e-5)


def test_ends_of_the_path_are_the_two_predictors(x64):
    data = drawn(1)
    x, y = np.asarray(data.x), np.asarray(data.y)
    path = np.asarray(theory.path(data, jnp.exp(jnp.linspace(4.0, -12.0, 81))))
    np.testing.assert_allclose(theory.kernel(data), np.linalg.pinv(x) @ y, atol=1e-12)
    np.testing.assert_allclose(path[0], np.linalg.pinv(x) @ y, atol=1e-5)
    program = scipy.optimize.linprog(np.ones(20), A_eq=np.concatenate([x, -x], 1), b_eq=y)
    np.testing.assert_allclose(path[-1], program.x[:10] - program.x[10:], atol=1e-2)


def test_small_first_scale_is_reached_without_a_path(x64):
    data = drawn(2)
    direct = theory.path(data, jnp.array([1e-2]))[0]
    slow = theory.path(data, jnp.exp(jnp.linspace(2.0, np.log(1e-2), 60)))[-1]
    np.testing.assert_allclose(direct, slow, atol=1e-9)


def test_crossing_is_the_last_fall_between_records(x64):
    times = jnp.array([0.0, 1.0, 2.0, 3.0])
    assert float(theory.crossing(times, jnp.array([4.0, 1.0, 3.0, 1.0]), 2.0)) == pytest.approx(2.5)
    assert float(theory.crossing(times, jnp.array([4.0, 4.0, 4.0, 4.0]), 2.0)) == 3.0
    assert float(theory.crossing(times, jnp.array([4.0, 1.0, 1.0, 1.0]), 2.0)) == pytest.approx(2 / 3)


def test_least_one_norm_is_scipys_and_the_end_of_the_path(x64):
    for seed, active in ((0, 2), (1, 5), (2, 9)):  # few active weights are recovered, many are not
        data = model.sample(jax.random.key(seed), 8, 14, active)
        found = np.asarray(jax.jit(sparse.least_one_norm)(data))
        x, y = np.asarray(data.x), np.asarray(data.y)
        program = scipy.optimize.linprog(np.ones(28), A_eq=np.concatenate([x, -x], 1), b_eq=y)
        np.testing.assert_allclose(found, program.x[:14] - program.x[14:], atol=1e-4)
        np.testing.assert_allclose(x @ found, y, atol=1e-8)
        end = theory.path(data, jnp.exp(jnp.linspace(4.0, -16.0, 101)))[-1]
        assert np.abs(found).sum() - 1e-4 < np.abs(end).sum() < 1.01 * np.abs(found).sum()
