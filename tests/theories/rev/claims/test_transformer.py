"""Judges of the multi-layer claims, and their figures."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn import plotting
from jaxdyn.theories.rev import logits
from jaxdyn.theories.rev.claims import transformer as claims
from jaxdyn.theories.rev.trials import transformer as runs


def synthetic(train=0.01, validation=5.0, learned=11.0, unseen=0.5):
    seeds = np.arange(4)
    z = np.full((4, 2, 4), learned) + 0.1 * seeds[:, None, None]
    z[..., 3] = unseen
    return xr.Dataset(
        {
            "measured_train": ("seed", train + 0.001 * seeds),
            "predicted_train": ("seed", np.zeros(4)),
            "measured_validation": ("seed", validation + 0.01 * seeds),
            "predicted_validation": ("seed", np.full(4, np.log(80))),
            "status": ("seed", np.zeros(4, int)),
            "same_kind": ("seed", np.full(4, train)),
            "group_z": (("seed", "read", "group"), z),
            "measured_unseen": (("seed", "read"), z[..., 3]),
            "predicted_unseen": (("seed", "read"), np.zeros((4, 2))),
        },
        {"seed": seeds, "read": list(logits.READS), "group": list(runs.GROUPS)},
    )


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    rng = np.random.default_rng(0)
    curves = {name: (("seed", "epoch"), rng.uniform(0.1, 5, (4, 3))) for name in ("train", "validation")}
    maps = {"logits": (("seed", "read", "map", "given", "answer"), rng.normal(size=(4, 2, 2, 5, 5)))}
    ds = synthetic().assign(curves | maps).assign_coords(epoch=[0, 10, 20], map=list(logits.MAPS["reversal"]))
    assert plotting.render(claim.plot, ds).startswith("<svg")


def test_judges_accept_the_curse_and_reject_its_breaches():
    judge_asym = claims.judge_asym("asked")
    good = synthetic()
    assert all(c.passed for c in [*claims.judge_nll(good), *judge_asym(good)])
    for bad in (synthetic(train=0.06), synthetic(validation=4.3), good.assign(measured_validation=good.same_kind)):
        assert not all(c.passed for c in claims.judge_nll(bad))
    for bad in (synthetic(learned=9.0), synthetic(unseen=-3.1), claims.learned_back(good)):
        assert not all(c.passed for c in judge_asym(bad))
