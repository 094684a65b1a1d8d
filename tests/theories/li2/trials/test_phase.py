"""Accuracies beside the critical share, from curves that are planted in place of a training."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.li2.trials import phase
from jaxdyn.theories.li2.trials.training import Run, Training


@pytest.mark.parametrize(("group", "order"), [("13", 13), ("D12", 24), ("5x5", 25)])
def test_the_trial_tells_the_share_its_critical_value_and_all_curves(monkeypatch, x64, group, order):
    s = Training(group=group, share=0.7, critical=True, epochs=4, every=2)
    curves, asked = {"train_accuracy": jnp.arange(3.0), "test_accuracy": jnp.arange(3.0) / 2}, []

    def train(s, key, known):
        asked.append(known)
        return Run(None, curves)

    monkeypatch.setattr(phase, "train", train)
    seen = phase.trial(s, jax.random.key(0))
    critical = 2.7482 * math.log(order) / order
    assert asked == [1.0] and float(seen.recorded["order"].value) == order
    np.testing.assert_allclose(seen.predicted["critical"].value, critical, rtol=1e-12)
    np.testing.assert_allclose(seen.measured["critical"].value, 0.7 * critical, rtol=1e-12)
    for name, curve in curves.items():
        np.testing.assert_array_equal(seen.recorded[name].value, curve)
