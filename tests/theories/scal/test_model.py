"""The linear model: its losses are those of the models of its first features, and descent is exact in each weight."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import zeta

from jaxdyn.theories.scal import model


def test_losses_are_means_over_all_features(x64):
    eigenvalues = model.spectrum(50, 1.5)
    goal = model.target(eigenvalues, 1.75)
    np.testing.assert_allclose(eigenvalues * goal**2, np.arange(1, 51.0) ** -1.75, rtol=1e-12)
    w = jnp.asarray(np.random.default_rng(0).normal(size=50))
    first = 0.5 * np.sum((eigenvalues * (w - goal) ** 2)[:7])
    found = model.losses(w, eigenvalues, goal, 1.75)
    np.testing.assert_allclose(found[6], 2 * first + zeta(1.75, 8), rtol=1e-12)
    np.testing.assert_allclose(model.losses(0 * w, eigenvalues, goal, 1.75), np.full(50, zeta(1.75, 1)), rtol=1e-12)


def test_a_step_shrinks_each_error_by_its_eigenvalue(x64):
    eigenvalues = model.spectrum(20, 2.0, 0.01)
    assert (eigenvalues[1:] < np.arange(2, 21.0) ** -2).all()
    goal, w = model.target(eigenvalues, 1.5), jnp.zeros(20)
    after = w - 0.5 * jax.grad(model.loss)(w, eigenvalues, goal)
    np.testing.assert_allclose(goal - after, (1 - 0.5 * eigenvalues) * goal, rtol=1e-12)
