"""Two layers of attention by loops over queries and keys, and the breach without the first."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.ih import model


@pytest.mark.parametrize("first", [1.0, 0.0])
def test_forward_by_loops(x64, first):
    p = jax.jit(lambda key: model.init(key, 3, 5, 4, "float64"))(jax.random.key(0))
    p = p._replace(position=jnp.asarray(np.random.default_rng(1).normal(size=(2, 5))))
    tokens = np.array([0, 2, 1, 1, 0])
    logits, weights = jax.device_get(jax.jit(model.forward)(p, tokens[None], first))
    x = np.asarray(p.embed)[tokens]
    for layer, share in ((0, first), (1, 1.0)):
        q, k, v = (x @ np.asarray(m) for m in p.qkv[layer])
        out = np.zeros_like(x)
        for t in range(5):
            scores = np.array([q[t] @ k[s] / 2 + p.position[layer, t - s] for s in range(t + 1)])
            b = np.exp(scores) / np.exp(scores).sum()
            np.testing.assert_allclose(weights[layer, 0, t], np.append(b, np.zeros(4 - t)), atol=1e-12)
            out[t] = b @ v[: t + 1]
        x = x + share * out
    np.testing.assert_allclose(logits[0], x @ np.asarray(p.head).T, rtol=1e-10)
