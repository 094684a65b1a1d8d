"""The layer of JoMA under fixed upper gradients, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import jaxdyn as jd
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.linear import layer as net

slope = jax.jit(jax.grad(net.loss))


def normals(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


def make_layer(seed, kind, phi="id", feedback=0.0):
    x, g, z, v, b = normals(seed, (9, 5), (9, 2), (5,), (5, 2), (5,))
    x = jnp.asarray(scipy.special.softmax(x, -1))
    layer = net.Layer(
        x,
        jnp.asarray(g),
        jd.Code.of(kind, net.KINDS),
        jnp.asarray(scipy.special.softmax(b)),
        jd.Code.of(phi, net.PHIS),
        1.7,
        net.pull(x, feedback),
    )
    return layer, net.Params(jnp.asarray(z), jnp.asarray(v))


@pytest.mark.parametrize("kind", ["exp", "linear", "softmax"])
def test_attention_is_that_of_the_block(x64, kind):
    layer, params = make_layer(0, kind)
    z = jnp.broadcast_to(params.z, layer.x.shape)
    expected = model.attention(layer.x, z, jd.Code.of(kind, model.ATTENTIONS), normalizer=1.7)
    np.testing.assert_allclose(net.attended(params.z, layer), expected, rtol=1e-13)


@pytest.mark.parametrize("kind", ["exp", "linear", "softmax", "shared", "none"])
@pytest.mark.parametrize("phi", net.PHIS)
def test_gradient_is_the_flow_of_the_spec(x64, kind, phi):
    """dV/dt = E[G b], dz/dt = E[J^T sum_k G_k v_k], with the Jacobian of each kind of attention written out."""
    layer, params = make_layer(1, kind, phi)
    x, g, z, v, bar = (np.asarray(a) for a in (layer.x, layer.g, params.z, params.v, layer.mean_attention))
    e = np.exp(z)
    normal = {"exp": 1.7, "linear": 1, "softmax": (x @ e)[:, None], "shared": x.mean(0) @ e, "none": 1.7}[kind]
    b = x * {"linear": z, "none": 1.0}.get(kind, e) / normal
    upper = g * (1 - np.tanh(b @ v) ** 2 if phi == "tanh" else 1.0)
    rate_v, rate_z = b.T @ upper / 9, np.zeros(5)
    for i in range(9):
        jacobian = {
            "exp": np.diag(b[i]),
            "linear": np.diag(x[i]),
            "softmax": np.diag(b[i]) - np.outer(b[i], b[i]),
            "shared": np.diag(b[i]) - np.outer(b[i], bar),
            "none": np.zeros((5, 5)),
        }[kind]
        rate_z += jacobian.T @ v @ upper[i] / 9
    got = slope(params, layer)
    np.testing.assert_allclose(got.v, -rate_v, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(got.z, -rate_z, rtol=1e-11, atol=1e-14)


def test_pull_moves_the_saliency_with_the_weights(x64):
    layer, params = make_layer(2, "none", feedback=0.4)
    got = slope(params, layer).v * 1.7
    np.testing.assert_allclose(got, -(net.saliency(layer) - 0.4 * params.v), rtol=1e-10)


def test_descent_is_plain_descent(x64):
    layer, params = make_layer(3, "exp")
    got = net.trained(params, layer, lr=0.05, ratio=2.0, samples=2, every=3)
    p = params
    for step in range(1, 7):
        g = slope(p, layer)
        p = net.Params(p.z - 0.1 * g.z, p.v - 0.05 * g.v)
        if step % 3 == 0:
            np.testing.assert_allclose(got.v[step // 3], p.v, rtol=1e-12)
            np.testing.assert_allclose(got.z[step // 3], p.z, rtol=1e-12)
