"""The judge of the order of events, on planted curves."""

import numpy as np
import xarray as xr

from jaxdyn.theories.li2.claims import stages
from tests.theories.li2.helpers import passes, refuses_opponents

(CLAIM,) = stages.CLAIMS
EPOCHS = np.arange(41)


def staged(peak=10, half=20):
    """A signal that doubles until ``peak`` and then falls, and accuracies that pass one half at ``half``."""
    sent = np.where(EPOCHS <= peak, 1 + EPOCHS / peak, 2 * np.exp(-(EPOCHS - peak) / 8.0))
    curves = {"sent": sent, "high": 1 + 0 * sent, "test_accuracy": 1 / (1 + np.exp(half - EPOCHS)), "train_accuracy": EPOCHS > 2}
    ds = xr.Dataset({f"curve_{n}": (("seed", "epoch"), np.tile(c * 1.0, (16, 1))) for n, c in curves.items()})
    return ds.assign(measured_nodes=("seed", np.full(16, 0.05))).assign_coords(seed=np.arange(16), epoch=EPOCHS)


def test_the_judge_upholds_what_is_planted_and_refuses_others():
    assert passes(CLAIM, staged())
    assert not passes(CLAIM, staged(peak=25, half=20))
    refuses_opponents(CLAIM, staged())


def test_the_epoch_at_which_a_level_is_reached():
    ds = staged(half=20)
    assert np.all(stages.reached(ds, "test_accuracy", 0.5) == 20)
    assert np.all(np.isnan(stages.reached(ds, "test_accuracy", 1.5)))


def test_networks_that_do_not_generalise_fail_the_gate():
    ds = staged()
    gate = stages.judge(ds.assign(curve_test_accuracy=0.5 * ds.curve_test_accuracy))[0]
    assert gate.gate and not gate.passed
