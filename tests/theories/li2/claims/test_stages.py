"""The judge of the order of events, on planted curves."""

import numpy as np
import xarray as xr

from jaxdyn.theories.li2.claims import stages
from tests.theories.li2.helpers import passes, refuses_opponents

CLAIM, ORDER = stages.CLAIMS
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


def layered(gradient=3.7, change=1.2, noise=0.2, first=0.9):
    """Curves of both layers with smooth peaks near epoch 47, those of V ``gradient`` and ``change`` epochs earlier."""
    rng = np.random.default_rng(1)
    epoch = np.arange(101)

    def bell(earlier):
        return 1 / (1 + ((epoch - 47 + earlier + noise * rng.standard_normal((10, 1))) / 20) ** 2)

    curves = {"pull_v": bell(gradient), "pull_w": bell(0), "change_v": bell(change), "change_w": bell(0)}
    for name in ("change_v", "change_w"):
        curves[name][:, :2] = 0, first
    ds = xr.Dataset({f"curve_{name}": (("seed", "epoch"), value) for name, value in curves.items()})
    return ds.assign(curve_test_accuracy=0 * ds.curve_pull_v + 1).assign_coords(seed=np.arange(10), epoch=epoch)


def test_peaks_lie_between_records():
    ds = layered(noise=0.0)
    np.testing.assert_allclose(stages.largest(ds, "pull_v"), 47 - 3.7, atol=0.01)
    np.testing.assert_allclose(
        stages.largest(ds.assign_coords(epoch=10 + 2 * ds.epoch), "change_v"), 10 + 2 * (47 - 1.2), atol=0.02
    )


def test_the_order_of_the_layers_is_judged_and_opponents_are_refused():
    right = layered()
    assert passes(ORDER, right)
    assert [c.passed for c in ORDER.judge(layered(gradient=0.0)) if not c.gate] == [False, True]
    assert [c.passed for c in ORDER.judge(layered(change=-1.0)) if not c.gate] == [True, False]
    for opponent in (stages.exchanged, stages.alike):
        assert False in [c.passed for c in ORDER.judge(opponent(right))]
    gates = [c.passed for c in ORDER.judge(layered(first=1.0)) if c.gate]
    assert gates == [True, False], "Adam's first steps may not be the largest"
