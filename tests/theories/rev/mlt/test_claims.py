"""Judges of the multi-layer claims, and their figures."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn import plotting
from jaxdyn.theories.rev.mlt import claims, logits, trial
from tests.theories.rev.helpers import passed


def synthetic(train=0.01, validation=5.0, learned=11.0, wins=0.8, excess=1.2):
    seeds = np.arange(4)
    small = 0.1 * seeds[:, None] * np.ones(2)
    both = ("seed", "read")
    return xr.Dataset(
        {
            "measured_train": ("seed", train + 0.001 * seeds),
            "predicted_train": ("seed", np.zeros(4)),
            "measured_validation": ("seed", validation + 0.01 * seeds),
            "predicted_validation": ("seed", np.full(4, np.log(80))),
            "status": ("seed", np.zeros(4, int)),
            "same_kind": ("seed", np.full(4, train)),
            "group_z": (("seed", "read", "group"), learned + small[..., None] * np.ones(4)),
            "measured_wins": (both, wins + 0.1 * small),
            "predicted_wins": (both, np.full((4, 2), 0.5)),
            "measured_excess": (both, excess + small),
            "predicted_excess": (both, np.zeros((4, 2))),
            "learned_excess": (both, learned + small),
            "dealt_wins": (both, 0.5 + small),
            "dealt_excess": (both, small),
        },
        {"seed": seeds, "read": list(logits.READS), "group": list(trial.GROUPS)},
    )


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    rng = np.random.default_rng(0)
    curves = {name: (("seed", "epoch"), rng.uniform(0.1, 5, (4, 3))) for name in ("train", "validation")}
    maps = {"logits": (("seed", "read", "map", "given", "answer"), rng.normal(size=(4, 2, 2, 5, 5)))}
    ds = synthetic().assign(curves | maps).assign_coords(epoch=[0, 10, 20], map=list(logits.MAPS["reversal"]))
    assert plotting.render(claim.plot, ds).startswith("<svg")


def test_judges_accept_the_curse_and_reject_its_breaches():
    judge_asym = claims.judge_asym("asked", claims.STANDS_OUT)
    good = synthetic()
    assert passed(claims.judge_nll, good) and passed(judge_asym, good) and passed(claims.judge_rank, good)
    for bad in (synthetic(train=0.06), synthetic(validation=4.3), synthetic(excess=2.5), claims.asked_before(good)):
        assert not passed(claims.judge_nll, bad)
    for bad in (synthetic(learned=8.0), synthetic(excess=-2.5), claims.unlearned(good), claims.REVERSED_TOO(good)):
        assert not passed(judge_asym, bad)
    for bad in (synthetic(wins=0.3), synthetic(excess=2.5), claims.NO_TRACE(good), claims.REVERSED_TOO(good)):
        assert not passed(claims.judge_rank, bad)
