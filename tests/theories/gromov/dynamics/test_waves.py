"""Sums of waves against the network's own logits."""

import jax
import numpy as np

from jaxdyn.theories.gromov import model
from jaxdyn.theories.gromov.dynamics import waves


def test_waves_add_up_to_the_logits_for_any_phases(x64):
    for how in ({}, {"free": True}, {"cycled": True}):
        nodes = model.draw(jax.random.key(3), 7, 5, **how)
        np.testing.assert_allclose(waves.waves(nodes, 7), model.logits(nodes, 7), atol=1e-12)
    assert np.max(np.abs(np.asarray(waves.waves(nodes, 7, slip=True) - model.logits(nodes, 7)))) > 0.1
