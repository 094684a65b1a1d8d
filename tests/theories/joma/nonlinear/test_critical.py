"""The node near a critical point: its gradients under each kind of attention."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.theories.joma.nonlinear import critical


def test_gradients_under_every_attention(x64):
    rng = np.random.default_rng(0)
    v, z, g = rng.normal(size=(3, 4))
    total = np.exp(z).sum()
    expected = {
        "exp": (np.exp(z), g * v * np.exp(z)),
        "normalised": (np.exp(z) / total, g * v * np.exp(z) / total),
        "linear": (z, g * v),
        "none": (np.ones(4), np.zeros(4)),
        "softmax": (np.exp(z) / total, np.exp(z) / total * (g * v - np.sum(g * v * np.exp(z)) / total)),
    }
    gradients = jax.jit(critical.gradients)
    for name in critical.ATTENTIONS:
        dv, dz = gradients(jnp.array(v), jnp.array(z), jnp.array(g), jd.Code.of(name, critical.ATTENTIONS))
        np.testing.assert_allclose(dv, expected[name][0], rtol=1e-13)
        np.testing.assert_allclose(dz, expected[name][1], rtol=1e-13)
