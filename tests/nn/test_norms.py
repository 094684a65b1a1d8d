"""The norms against NumPy, and in low precision."""

import jax.numpy as jnp
import numpy as np

from jaxdyn.nn.norms import layer_norm, rms_norm

RNG = np.random.default_rng(0)


def test_numpy(x64):
    x, gain, bias = RNG.normal(size=(3, 5)), RNG.normal(size=5), RNG.normal(size=5)
    centred = x - x.mean(-1, keepdims=True)
    np.testing.assert_allclose(
        layer_norm(x, gain, bias, 1e-5), centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gain + bias, rtol=1e-12
    )
    np.testing.assert_allclose(rms_norm(x, gain, 1e-5), x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gain, rtol=1e-12)


def test_sums_run_in_float32():
    x = jnp.full((1, 4096), 1.0, jnp.bfloat16).at[0, ::2].set(1.25)
    one, zero = jnp.ones(4096, jnp.bfloat16), jnp.zeros(4096, jnp.bfloat16)
    out = layer_norm(x, one, zero, 0.0)
    assert out.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(out, np.float32)[0, :2], [1, -1], rtol=1e-2)
