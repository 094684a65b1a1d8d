"""The one-layer network against NumPy, finite differences and the dense network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from jaxdyn.theories.rev import model
from jaxdyn.theories.snap import model as snap

M = 7


SEQUENCE = np.array([2, 5, 3], np.int32)


PRESENT = {"x1": np.array([1.0, 0.0]), "both": np.array([1.0, 1.0])}


def numpy_log_p(y, z, sequence, both, tied):
    x1, x2 = sequence[:2]
    keys = [x1, x2] if both else [x1]
    c = np.exp([z[x2, k] for k in keys])
    c /= c.sum()
    w = y + y.T if tied else y
    scores = (c / np.sqrt((c**2).sum())) @ w[keys]
    return scores - np.log(np.exp(scores).sum())


def random_params(seed=0):
    return np.random.default_rng(seed).normal(size=(2, M, M))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("keys", PRESENT)
def test_forward(x64, keys, tied):
    y, z = random_params()
    active = model.read(model.Params(jnp.asarray(y), jnp.asarray(z)), jnp.asarray(SEQUENCE), tied)
    expected = numpy_log_p(y, z, SEQUENCE, keys == "both", tied)
    np.testing.assert_allclose(model.log_probabilities(active, jnp.asarray(PRESENT[keys])), expected, rtol=1e-12)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("keys", PRESENT)
def test_step_is_descent_of_finite_differences(x64, keys, tied):
    y, z = random_params(1)
    params = model.Params(jnp.asarray(y), jnp.asarray(z))
    after = model.sgd_step(params, jnp.asarray(SEQUENCE), jnp.asarray(PRESENT[keys]), jnp.float64(0.5), jnp.float64(0.25), tied)

    def cost(flat):
        y, z = flat.reshape(2, M, M)
        return -numpy_log_p(y, z, SEQUENCE, keys == "both", tied)[SEQUENCE[2]]

    gradient = scipy.optimize.approx_fprime(np.stack([y, z]).ravel(), cost, 1e-7).reshape(2, M, M)
    np.testing.assert_allclose(after.y, y - 0.5 * gradient[0], atol=2e-7)
    np.testing.assert_allclose(after.z, z - 0.25 * gradient[1], atol=2e-7)


def test_step_is_that_of_the_dense_network_on_counts(x64):
    y, z = random_params(2)
    params = model.Params(jnp.asarray(y), jnp.asarray(z))
    counts = jnp.zeros((1, M)).at[0, SEQUENCE[:2]].set(1.0)
    query, label = jnp.asarray(SEQUENCE[1:2]), jnp.asarray(SEQUENCE[2:])
    dense = jax.jit(jax.grad(snap.cross_entropy))(params, counts, query, label, jnp.ones(1))
    after = model.sgd_step(params, jnp.asarray(SEQUENCE), jnp.asarray(PRESENT["both"]), jnp.float64(1.0), jnp.float64(1.0), False)
    np.testing.assert_allclose(after.y, y - dense.y, rtol=1e-12)
    np.testing.assert_allclose(after.z, z - dense.z, rtol=1e-12, atol=1e-15)


def test_attention_over_one_key_has_no_gradient(x64):
    y, z = random_params(3)
    g = jax.jit(jax.grad(model.loss))(
        model.read(model.Params(jnp.asarray(y), jnp.asarray(z)), jnp.asarray(SEQUENCE)),
        jnp.asarray(PRESENT["x1"]),
        int(SEQUENCE[2]),
    )
    assert np.all(np.asarray(g.z) == 0)
    assert np.all(np.asarray(g.rows[1]) == 0)
