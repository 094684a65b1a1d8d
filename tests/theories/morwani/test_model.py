"""The network of squares against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.morwani import model


def test_outputs_margin_and_penalty_are_numpys(x64):
    params = model.init(jax.random.key(0), 5, 6, 0.5)
    assert params.u.dtype == jnp.float32
    u, v, w = (np.asarray(x, np.float64) for x in params)
    out = np.asarray(model.outputs(params))
    margins = []
    for a in range(5):
        for b in range(5):
            row = np.sum(w * (u[a] + v[b]) ** 2, 1)
            np.testing.assert_allclose(out[5 * a + b], row, atol=1e-5)
            right = (a + b) % 5
            assert int(model.labels(5)[5 * a + b]) == right
            margins.append(row[right] - np.max(np.delete(row, right)))
    assert float(model.margin(params)) == pytest.approx(min(margins), abs=1e-5)
    norms = np.sqrt(np.sum(u**2 + v**2 + w**2, 0))
    assert float(model.penalty(params, 2.0)) == pytest.approx(np.sum(norms**2), rel=1e-5)
    assert float(jnp.sum(model.cubes(params))) == pytest.approx(np.sum(norms**3), rel=1e-5)
    shifted = out - out.max(1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    loss = -np.mean(logs[np.arange(25), np.asarray(model.labels(5))])
    assert float(model.cross_entropy(params)) == pytest.approx(loss, rel=1e-5)


def test_normalised_margin_does_not_change_with_scale(x64):
    params = model.init(jax.random.key(1), 7, 24, 1.0, "float64")
    double = jax.tree.map(lambda x: 2 * x, params)
    assert float(model.normalised(double)) == pytest.approx(float(model.normalised(params)), rel=1e-12)


def test_spectrum_finds_the_frequencies_of_waves(x64):
    a = jnp.arange(7, dtype=jnp.float64)[:, None]
    one, two = jnp.cos(2 * jnp.pi * a / 7), 2 * jnp.cos(2 * jnp.pi * 3 * a / 7 + 1)
    wave = jnp.concatenate([one, two], 1)
    share, purity = model.spectrum(model.Params(wave, wave, wave))
    np.testing.assert_allclose(share, [1 / 9, 0, 8 / 9], atol=1e-12)
    assert float(purity) == pytest.approx(1)
    flat = model.Params(wave + 1, wave + 1, wave + 1)
    assert float(model.spectrum(flat)[1]) < 0.7
    dead = jnp.concatenate([wave, jnp.zeros((7, 1))], 1)
    share, purity = model.spectrum(model.Params(dead, dead, dead))
    np.testing.assert_allclose(share, [1 / 9, 0, 8 / 9], atol=1e-12)
    assert float(purity) == pytest.approx(1)
