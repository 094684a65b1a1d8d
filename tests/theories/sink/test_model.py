"""The block of the Bigram-Backcopy task against NumPy, position by position, for every form of attention."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.sink import model


def plain(p, tokens, form):
    """Logits of one sequence from the formulas."""
    norm = lambda x, g: x / np.sqrt(np.mean(x**2, -1, keepdims=True) + 1e-6) * g  # noqa: E731
    x = p.embed[tokens] + p.position[: len(tokens)]
    z = norm(x, p.gains[0])
    q, k, v = (z @ w for w in p.qkv)
    out = []
    for i in range(len(tokens)):
        s = np.array([q[i] @ k[j] for j in range(i + 1)]) / np.sqrt(q.shape[1])
        e = np.exp(s)
        b = {
            "softmax": e / e.sum(),
            "zero_sink": e / (1 + e.sum()),
            "sink_bias": e / (np.exp(p.sink) + e.sum()),
            "relu": np.maximum(s, 0) / (i + 1),
            "sigmoid": 1 / (1 + np.exp(-s)),
        }[form]
        out.append(b @ v[: i + 1] @ p.out)
    x = x + np.array(out)
    x = x + np.maximum(norm(x, p.gains[1]) @ p.inner, 0) @ p.outer
    return norm(x, p.gains[2]) @ p.head.T


@pytest.mark.parametrize("form", model.FORMS)
def test_logits(form, x64):
    params = model.init(jax.random.key(0), 7, 6, 8, 12, "float64")
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda x: np.asarray(x) + 0.1 * rng.normal(size=x.shape), params)
    tokens = rng.integers(0, 7, 5)
    code = jd.Code.of(form, model.FORMS)
    logits, seen = jax.jit(lambda p, t, i: model.forward(p, t, jd.Code(i, model.FORMS)))(params, tokens, code.index)
    np.testing.assert_allclose(logits, plain(params, tokens, form), rtol=1e-9, atol=1e-10)
    assert seen.weights.shape == (5, 5) and seen.written.shape == (5, 8)
