"""The gradient's form against numerical Jacobians of the frozen network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.galore import model
from jaxdyn.theories.galore.dynamics import gradient

gates, squared_parts, softmax_parts, chain = map(
    jax.jit, (gradient.gates, gradient.squared_parts, gradient.softmax_parts, model.chain)
)
squared_gradient, cross_gradient = (jax.jit(jax.grad(f)) for f in (model.squared, model.cross_entropy))


def given(depth=3, width=4):
    rng = np.random.default_rng(0)
    w, (x, y) = rng.normal(size=(depth, width, width)), rng.normal(size=(2, 5, width))
    return jnp.asarray(w), jnp.asarray(x), jnp.asarray(y)


@pytest.mark.parametrize("kind", model.LAYERS)
def test_gates_times_inputs_are_the_layers(kind, x64):
    w, x, _ = given()
    bias = jnp.asarray(np.random.default_rng(1).normal(size=(3, 4))) * (kind == "bias")
    k, f = gates(w, x[0], model.LAYERS.index(kind), bias)
    out = k[-1] @ w[-1] @ f[-1]
    np.testing.assert_allclose(out, chain(w, x[0], model.LAYERS.index(kind), bias), atol=1e-12)


def test_terms_are_those_of_frozen_jacobians(x64):
    w, x, y = given()
    zero = jnp.zeros((3, 4))
    a, b = squared_parts(w, x, y, jnp.int32(0), zero)
    for layer in range(3):
        by_hand_a, by_hand_b = [], []
        for one, target in zip(x, y, strict=True):
            f = np.asarray(one)
            for i in range(layer):
                f = np.maximum(w[i] @ f, 0)
            j, z = np.eye(4), np.asarray(w[layer] @ f)
            for i in range(layer, 3):
                gate = np.diag((z > 0).astype(float)) if i < 2 else np.eye(4)
                j = gate @ j
                z = gate @ z
                if i < 2:
                    j, z = w[i + 1] @ j, w[i + 1] @ z
            by_hand_a.append(np.outer(j.T @ target, f))
            by_hand_b.append(np.outer(j.T @ j @ w[layer] @ f, f))
        np.testing.assert_allclose(a[layer], np.mean(by_hand_a, 0), atol=1e-12)
        np.testing.assert_allclose(b[layer], np.mean(by_hand_b, 0), atol=1e-12)


def test_their_difference_is_the_gradient_of_reversible_networks_only(x64):
    w, x, y = given()
    bias = jnp.ones((3, 4))
    for kind in range(len(model.LAYERS)):
        a, b = squared_parts(w, x, y, jnp.int32(kind), bias * (model.LAYERS[kind] == "bias"))
        true = -squared_gradient(w, x, y, jnp.int32(kind), bias)
        error = float(jnp.linalg.norm(a - b - true) / jnp.linalg.norm(true))
        assert error < 1e-12 if kind < 2 else error > 1e-2


def test_softmax_terms_are_the_gradient_at_vanishing_logits(x64):
    w, x, _ = given()
    y = jnp.eye(4)[jnp.array([0, 1, 2, 3, 0])]
    errors = []
    for size in (1e-2, 1e-3):
        small = w.at[-1].multiply(size)
        a, b = softmax_parts(small, x, y)
        true = -cross_gradient(small, x, y)
        errors.append(float(jnp.linalg.norm(a - b - true) / jnp.linalg.norm(b)))
    assert 5 < errors[0] / errors[1] < 20 and errors[1] < 1e-2
