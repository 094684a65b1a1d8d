"""Muon against SciPy's polar factor, the recipe on singular values, and steps by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.linalg

from jaxdyn.optim.muon import NEWTON_SCHULZ, muon, newton_schulz, polar


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (5, 5)])
def test_polar_is_scipys_and_newton_schulz_the_recipe(shape, x64):
    g = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_allclose(jax.jit(polar)(g), scipy.linalg.polar(g)[0], atol=1e-12)
    u, s, vt = np.linalg.svd(g, full_matrices=False)
    scaled = s / (np.linalg.norm(s) + 1e-7)
    for a, b, c in ((4.01, -9.22, 5.80), (3.49, -6.38, 3.23), (3.34, -6.21, 3.20), (3.64, -7.48, 4.43), (3.46, -5.35, 2.85)):
        scaled = a * scaled + b * scaled**3 + c * scaled**5  # singular vectors stay
    np.testing.assert_allclose(jax.jit(newton_schulz)(g), u * scaled @ vt, atol=1e-9)


def test_singular_values_after_newton_schulz_are_near_one():
    s = np.linspace(0.02, 1, 4000)
    for a, b, c in NEWTON_SCHULZ:
        s = a * s + b * s**3 + c * s**5
    assert 0.6 < s.min() < s.max() < 1.2


@pytest.mark.parametrize(("orthogonal", "turn"), [("polar", polar), ("newton_schulz", newton_schulz)])
def test_steps_are_momentum_turned_and_decay_apart(orthogonal, turn, x64):
    rng = np.random.default_rng(1)
    w, gradients, lr, decay, beta = rng.normal(size=(3, 2)), rng.normal(size=(3, 3, 2)), 0.1, 0.2, 0.9
    tx = muon(jnp.float64(lr), decay, beta, orthogonal)
    params, momentum = {"w": jnp.asarray(w)}, np.zeros_like(w)
    state, update = tx.init(params), jax.jit(tx.update)
    for g in gradients:
        updates, state = update({"w": jnp.asarray(g)}, state, params)
        params = optax.apply_updates(params, updates)
        momentum = beta * momentum + (1 - beta) * g
        w = (1 - lr * decay) * w - lr * np.asarray(turn(jnp.asarray(momentum)))
        np.testing.assert_allclose(params["w"], w, atol=1e-12)
