"""Judges of irreps held and of learning rates, on planted runs."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.li2.interaction import diversity
from tests.theories.li2.helpers import passes, refuses_opponents

MUON, RATES = diversity.CLAIMS
SEEDS = np.arange(16)


def held(more=2.0, less=0.3):
    """Irreps held and test losses: Muon's nodes hold ``more``, and its loss is lower by exp(-less)."""
    noise = np.random.default_rng(1).normal(size=(2, 2, 16))
    irreps = 6 + np.array([0, more])[:, None] + 0.3 * noise[0]
    loss = np.exp(np.array([0, -less])[:, None] + 0.05 * noise[1])
    axes = ("optimizer", "seed")
    return xr.Dataset(
        {"measured_held": (axes, irreps), "measured_loss": (axes, loss)}, {"optimizer": ["adam", "muon"], "seed": SEEDS}
    )


def rated(energy=1.5, rates=(0.1, 0.2, 0.3)):
    """Runs that generalise at every rate; ``energy`` of nodes at the largest rate, 1 at others."""
    noise = np.random.default_rng(2).normal(size=(len(rates), 16))
    mean = np.append(np.ones(len(rates) - 1), energy)[:, None] + 0.02 * noise
    accuracy = np.ones((len(rates), 16, 2))
    data = {"energy": (("lr", "seed"), mean), "test_accuracy": (("lr", "seed", "epoch"), accuracy)}
    return xr.Dataset(data, {"lr": list(rates), "seed": SEEDS, "epoch": [0, 1]})


@pytest.mark.parametrize(
    ("claim", "right", "wrong"), [(MUON, held(), held(more=0.0)), (RATES, rated(), rated(energy=0.8))], ids=["muon", "rates"]
)
def test_a_judge_upholds_what_is_planted_and_refuses_others(claim, right, wrong):
    assert passes(claim, right)
    assert not passes(claim, wrong)
    refuses_opponents(claim, right)


def test_a_run_that_memorises_at_one_rate_shows_in_its_share():
    ds = rated()
    spoiled = ds.assign(test_accuracy=ds.test_accuracy.where(ds.lr != 0.2, 0.5))
    assert [c.passed for c in RATES.judge(spoiled)] == [True, False, True, True]


def test_too_few_runs_decide_nothing():
    with pytest.raises(jd.Inconclusive, match="seed"):
        diversity.judge_held(held().isel(seed=slice(8)))
