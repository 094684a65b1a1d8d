"""The bilinear model against NumPy, and its reduced flow against that of the dense parameters."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn import flow
from jaxdyn.engine.setting import Code
from jaxdyn.theories.rev.bilinear import model
from tests.theories.rev.helpers import numpy_losses


def test_gaussian_and_orthonormal_tokens(x64):
    sample = jax.jit(lambda kind, d: model.sample_tokens(jax.random.key(0), kind, 30, d, 500))
    gaussian, orthonormal = (Code.of(kind, model.KINDS) for kind in model.KINDS)
    gauss = np.asarray(sample(gaussian, 400.0))
    assert np.all(gauss[:, 400:] == 0) and abs(np.mean(np.sum(gauss**2, 1)) - 1) < 0.06
    for d in (30.0, 64.0):
        frame = np.asarray(sample(orthonormal, d))
        np.testing.assert_allclose(frame @ frame.T, np.eye(30), atol=1e-12)
    assert np.linalg.matrix_rank(np.asarray(sample(orthonormal, 20.0))) == 20


def test_orthonormal_tokens_in_few_dimensions(x64):
    frame = np.asarray(model.sample_tokens(jax.random.key(0), Code.of("orthonormal", model.KINDS), 6, jnp.float64(4.0), 4))
    assert frame.shape == (6, 4) and np.all(np.linalg.norm(frame, axis=1) <= 1 + 1e-12)


def test_bilinear_losses(x64):
    w = jnp.asarray(np.random.default_rng(0).normal(size=(9, 9)))
    forward, reverse = numpy_losses(np.asarray(w), 3)
    np.testing.assert_allclose(model.loss(w, 3), forward, rtol=1e-12)
    np.testing.assert_allclose(model.reverse_loss(w, 3), reverse, rtol=1e-12)
    np.testing.assert_allclose(model.objective(w, 3, 0.5), forward + 0.5 * reverse, rtol=1e-12)


def test_flow_of_theta_and_of_its_effective_weights_agree(x64):
    n, m, d = 2, 6, 5
    v = model.sample_tokens(jax.random.key(1), 0, m, jnp.float64(d), d)
    t = np.array([0.0, 5.0, 20.0])

    def theta_of(a, symmetric):
        return a + symmetric * (a.T - a) / 2

    def cost(a, symmetric):
        return model.objective(model.effective(theta_of(a, symmetric), v, n), n, 0.3)

    @jax.jit
    def both(symmetric):
        start = theta_of(0.1 * jax.random.normal(jax.random.key(2), (d, d), jnp.float64), symmetric)
        full = jax.vmap(theta_of, (0, None))(flow.gradient_flow(cost, start, t, symmetric).ys, symmetric)
        args = model.Flow(v @ v.T, jnp.float64(0.3), symmetric)
        reduced = flow.solve(lambda t, w, a: model.field(w, a, n), model.effective(start, v, n), t, args)
        return reduced.ys, jax.vmap(lambda theta: model.effective(theta, v, n))(full)

    for symmetric in (0.0, 1.0):
        np.testing.assert_allclose(*both(jnp.float64(symmetric)), atol=1e-8)
