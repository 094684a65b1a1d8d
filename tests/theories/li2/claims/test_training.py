"""Judges of claims on trained networks, on planted curves: stages, the zero start, irreps held, learning rates."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.li2.claims import diversity, stages, zero_init

SEEDS = np.arange(16)
EPOCHS = np.arange(41)


def passes(claim, ds):
    return all(check.passed for check in claim.judge(ds))


def staged(peak=10, half=20):
    """A signal that doubles until ``peak`` and then falls, and accuracies that pass one half at ``half``."""
    sent = np.where(EPOCHS <= peak, 1 + EPOCHS / peak, 2 * np.exp(-(EPOCHS - peak) / 8.0))
    curves = {"sent": sent, "high": 1 + 0 * sent, "test_accuracy": 1 / (1 + np.exp(half - EPOCHS)), "train_accuracy": EPOCHS > 2}
    ds = xr.Dataset({f"curve_{n}": (("seed", "epoch"), np.tile(c * 1.0, (16, 1))) for n, c in curves.items()})
    return ds.assign(measured_nodes=("seed", np.full(16, 0.05))).assign_coords(seed=SEEDS, epoch=EPOCHS)


def timed(few=(800, 650), many=(50, 38)):
    """Epochs from the normal start and from zero, on few and on many pairs."""
    noise = np.random.default_rng(0).normal(size=(2, 2, 16))
    time = np.array([[few[1], few[0]], [many[1], many[0]]])[..., None] + np.array([10, 2.0])[:, None, None] * noise
    coords = {"share": [0.4, 0.9], "top": [0.0, 1.0], "seed": SEEDS}
    ds = xr.Dataset({"measured_time": (("share", "top", "seed"), time)}, coords)
    return ds.assign(accuracy=xr.ones_like(ds.measured_time).expand_dims(epoch=[0, 1]))


def held(more=2.0, less=0.3):
    """Irreps held and test losses: Muon's nodes hold ``more``, and its loss is lower by exp(-less)."""
    noise = np.random.default_rng(1).normal(size=(2, 2, 16))
    irreps = 6 + np.array([0, more])[:, None] + 0.3 * noise[0]
    loss = np.exp(np.array([0, -less])[:, None] + 0.05 * noise[1])
    axes = ("optimizer", "seed")
    return xr.Dataset(
        {"measured_held": (axes, irreps), "measured_loss": (axes, loss)}, {"optimizer": ["adam", "muon"], "seed": SEEDS}
    )


def rated(energy=1.5):
    """Runs that generalise at every rate; ``energy`` of nodes at the largest rate, 1 at others."""
    noise = np.random.default_rng(2).normal(size=(3, 16))
    mean = np.array([1, 1, energy])[:, None] + 0.02 * noise
    accuracy = np.ones((3, 16, 2))
    data = {"energy": (("lr", "seed"), mean), "test_accuracy": (("lr", "seed", "epoch"), accuracy)}
    return xr.Dataset(data, {"lr": [0.1, 0.2, 0.3], "seed": SEEDS, "epoch": [0, 1]})


CASES = (
    (stages.CLAIMS[0], staged(), {"peak": 25, "half": 20}, staged),
    (zero_init.CLAIMS[0], timed(), {"many": (200, 100)}, timed),
    (diversity.CLAIMS[0], held(), {"more": 0.0}, held),
    (diversity.CLAIMS[1], rated(), {"energy": 0.8}, rated),
)


@pytest.mark.parametrize(("claim", "right", "wrong", "make"), CASES, ids=[case[0].id for case in CASES])
def test_a_judge_upholds_what_is_planted_and_refuses_others(claim, right, wrong, make):
    assert passes(claim, right)
    assert False in [check.passed for check in claim.judge(make(**wrong))]
    opponents = {name: control.breach for name, control in claim.controls.items()} | dict(claim.rivals)
    for name, opponent in opponents.items():
        assert False in [check.passed for check in claim.judge(opponent(right))], name


def test_networks_that_do_not_generalise_fail_the_gate():
    ds = staged()
    gate = stages.judge(ds.assign(curve_test_accuracy=0.5 * ds.curve_test_accuracy))[0]
    assert gate.gate and not gate.passed
    gate = zero_init.judge(timed().pipe(lambda ds: ds.assign(accuracy=0 * ds.accuracy)))[0]
    assert gate.gate and not gate.passed


def test_too_few_runs_decide_nothing():
    with pytest.raises(jd.Inconclusive, match="seed"):
        diversity.judge_held(held().isel(seed=slice(8)))
