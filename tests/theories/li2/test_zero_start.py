"""When a network generalises, from curves that are planted in place of a training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.li2 import zero_start
from jaxdyn.theories.li2.training import Run, Training

S = Training(group="5", share=0.6, epochs=12, every=3)


@pytest.mark.parametrize(
    ("curve", "epoch"), [([1.0, 0, 0, 0, 0], 0), ([0.2, 0.94, 0.95, 0.5, 1], 6), ([0, 0, 0, 0, 0.96], 12), ([0.9] * 5, 24)]
)
def test_the_first_record_at_the_level_or_twice_the_training(curve, epoch, x64):
    assert float(zero_start.reached(jnp.asarray(curve), S.every)) == epoch


def test_the_trial_ends_its_training_at_the_level_and_reports_its_curve(monkeypatch, x64):
    curve, asked = jnp.asarray([0.1, 0.4, 0.97, 0.97, 0.97]), []

    def train(s, key, known):
        asked.append((s, known))
        return Run(None, {"test_accuracy": curve})

    monkeypatch.setattr(zero_start, "train", train)
    seen = zero_start.trial(S, jax.random.key(0))
    assert asked == [(S, zero_start.KNOWN)] and float(seen.measured["time"].value) == 6
    np.testing.assert_array_equal(seen.recorded["accuracy"].value, curve)
    assert dict(seen.coords)["epoch"] == (0, 3, 6, 9, 12)
