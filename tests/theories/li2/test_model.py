"""Activations by switch, by name and as functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.li2 import model
from tests.theories.li2.helpers import SIGMA


def test_features_by_a_switch_are_those_by_name(x64):
    samples = model.pairs(5)
    w = jnp.asarray(np.random.default_rng(7).normal(size=(10, 3)))
    switched = jax.vmap(lambda number: model.features(w, samples, jd.Code(number, model.STUDIED)))
    x = np.asarray(w)[np.asarray(samples)[:, 0]] + np.asarray(w)[5 + np.asarray(samples)[:, 1]]
    expected = np.stack([SIGMA[name](x) for name in model.STUDIED])
    np.testing.assert_allclose(jax.jit(switched)(jnp.arange(len(model.STUDIED))), expected, atol=1e-14)


def test_activations_are_names_of_ours_and_of_jax_nn_and_functions(x64):
    x = jnp.linspace(-2, 2, 9, dtype=jnp.float64)
    np.testing.assert_allclose(model.activate(x, "gelu"), jax.nn.gelu(x))
    np.testing.assert_allclose(model.activate(x, lambda x: x + 1), x + 1)
    with pytest.raises(jd.UsageError, match="activation='sine' is not allowed: it is square, .* or a function of jax.nn"):
        model.activate(x, "sine")
