"""The network and its target against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.kumar import model


def test_outputs_target_and_error_are_numpys(x64):
    key = jax.random.key(0)
    w, x = model.init(key, 5, 3, 2.0, "float64"), model.inputs(key, 7, 3, "float64")
    first = model.init(jax.random.key(1), 5, 3, 1.0, "float64")
    assert w.dtype == jnp.float64

    def mean(v):
        h = np.asarray(x) @ np.asarray(v).T
        return (h + 0.25 * h**2).mean(1)

    expected = 0.5 * 3 * np.asarray(x)[:, 0] ** 2
    np.testing.assert_allclose(model.target(x), expected, rtol=1e-12)
    for centred in (0.0, 1.0):
        net = model.Network(2.0, 0.5, first, centred)
        out = 2 * (mean(w) - centred * mean(first))
        np.testing.assert_allclose(model.outputs(net, w, x), out, rtol=1e-12)
        assert float(model.error(net, w, x)) == pytest.approx(np.mean((out - expected) ** 2), rel=1e-12)


def test_inputs_have_length_one_on_average(x64):
    x = model.inputs(jax.random.key(2), 4000, 10, "float64")
    assert float(jnp.mean(jnp.sum(x**2, 1))) == pytest.approx(1, abs=0.03)
    w = model.init(jax.random.key(3), 400, 10, 0.5, "float32")
    assert w.dtype == jnp.float32 and float(jnp.std(w)) == pytest.approx(0.5, rel=0.05)
