"""Sums of waves against the network's own logits."""

import jax
import numpy as np

from jaxdyn.theories.gromov import model
from jaxdyn.theories.gromov.dynamics import waves


def test_waves_add_up_to_the_logits_where_the_output_has_the_sum_of_the_phases(x64):
    for how in ({}, {"cycled": True}):
        nodes = model.sample_nodes(jax.random.key(3), 7, 5, **how)
        np.testing.assert_allclose(waves.waves(nodes, 7), model.logits(nodes, 7), atol=1e-12)
    free = model.sample_nodes(jax.random.key(3), 7, 5, free=True)
    assert np.max(np.abs(np.asarray(waves.waves(free, 7) - model.logits(free, 7)))) > 0.1


def test_coherent_waves_are_the_mean_over_phases(x64):
    nodes = model.sample_nodes(jax.random.key(3), 7, 5)
    phi, psi = (2 * np.pi * np.stack(np.meshgrid(np.arange(5), np.arange(5))).reshape(2, -1, 1) / 5 + 0.3) * np.ones(5)
    every = jax.vmap(lambda p, q: model.logits(model.Nodes(nodes.theta, p, q, p + q), 7))(phi, psi)
    np.testing.assert_allclose(every.mean(0), waves.coherent(nodes, 7), atol=1e-12)
