"""Teacher and student against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.omnigrok import model

SIZES = (3, 6, 6, 2)


def test_network_is_numpys_and_stays_float32(x64):
    layers = model.init(jax.random.key(0), SIZES, 1.0)
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    hidden = x
    for w, b in layers[:-1]:
        hidden = np.tanh(hidden @ np.asarray(w) + np.asarray(b))
    slow = hidden @ np.asarray(layers[-1][0]) + np.asarray(layers[-1][1])
    found = jax.jit(model.apply)(layers, x)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, slow, atol=1e-6)
    assert float(model.error(layers, jnp.asarray(x), found + 0.5)) == pytest.approx(0.25, rel=1e-5)


def test_start_scales_with_alpha_and_the_fan_in(x64):
    one, two = (model.init(jax.random.key(1), SIZES, alpha) for alpha in (1.0, 2.0))
    assert float(model.norm(two) / model.norm(one)) == pytest.approx(2, rel=1e-6)
    for (w, b), fan_in in zip(one, SIZES[:-1], strict=True):
        assert max(float(jnp.max(jnp.abs(w))), float(jnp.max(jnp.abs(b)))) <= fan_in**-0.5
    slow = np.sqrt(sum(float(np.sum(np.square(leaf))) for leaf in jax.tree.leaves(one)))
    assert float(model.norm(one)) == pytest.approx(slow, rel=1e-6)
    held = model.rescale(one, jnp.float32(3.0))
    assert float(model.norm(held)) == pytest.approx(3, rel=1e-6)
    np.testing.assert_allclose(held[0][0] / one[0][0], 3 / slow, rtol=1e-5)


def test_teacher_labels_both_sets(x64):
    data = model.sample(jax.random.key(2), SIZES, 5, 400)
    assert data.y.shape == (5, 2) and data.y_test.shape == (400, 2)
    assert float(data.variance) == pytest.approx(np.var(np.asarray(data.y_test), 0).mean(), rel=1e-5)
