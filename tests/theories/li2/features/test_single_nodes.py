"""Networks and the forecasts for their nodes, at a tiny size."""

import jax
import numpy as np

from jaxdyn.theories.li2 import training
from jaxdyn.theories.li2.features import single_nodes
from jaxdyn.theories.li2.training import Training

S = Training(group="5", hidden=6, share=0.6, epochs=2, every=1)


def test_targets_are_those_of_the_training_pairs():
    d = training.data(S, jax.random.key(0))
    y = np.asarray(single_nodes.targets(d, S))
    assert np.sum(np.any(y != 0, 1)) == int(d.count)


def test_forecasts_and_measurements_have_a_number_for_every_node():
    with jax.enable_x64(True):
        run = jax.eval_shape(lambda key: single_nodes.trial(S, key), jax.random.key(0))
    assert run.predicted["place"].value.shape == (2, 6)
    assert run.measured["place"].value.shape == (6,)
