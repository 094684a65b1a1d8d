"""How fast networks are trained: rates read off planted losses, and several widths in one short sweep."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.dynamics import relax
from jaxdyn.theories.cogo.training import Training
from jaxdyn.theories.cogo.trials import overparam


@pytest.mark.parametrize(
    ("loss", "rate"), [([1, 0.1, 9e-4, 5e-4], 1 / 40), ([1, 0.5, 0.2, 1e-3], 0.0), ([5e-4] * 4, 1.0), ([1, 2e-3, 2e-3, 0], 1 / 60)]
)
def test_the_rate_is_one_over_the_first_epoch_below_the_level(monkeypatch, x64, loss, rate):
    asked = []

    def train(s, key, solved):
        asked.append(solved)
        return type("Run", (), {"curves": {"train_loss": jnp.asarray(loss)}})

    monkeypatch.setattr(overparam, "train", train)
    seen = overparam.trial(Training(group="7", hidden=15, epochs=60, every=20), jax.random.key(0))
    np.testing.assert_allclose(seen.measured["rate"].value, rate, rtol=1e-12)
    assert asked == [overparam.SOLVED] and (float(seen.recorded["enough"].value), float(seen.recorded["least"].value)) == (18, 14)


def test_a_trial_of_widths():
    grid = jd.grid(Training, width=[7.0, 15.0], group="7", hidden=15, epochs=40, every=20)
    runs = jd.sweep(overparam.trial, grid, 1)
    assert np.all(runs.measured_rate == 0)  # not solved in 40 epochs
    np.testing.assert_allclose(runs.predicted_rate.isel(seed=0), [relax.start_rate(7, q) for q in (7, 15)], rtol=1e-6)
