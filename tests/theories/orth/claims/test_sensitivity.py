"""The judge of the mixture on made-up runs."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.orth.claims import sensitivity


def passed(checks):
    return all(c.passed for c in checks)


def mixture_runs(power=1.0, floor=0.0, start=1e-12):
    """Runs whose residual is a power of the mean |cos|."""
    epsilon = np.array(sensitivity.EPSILONS)
    cosine = np.broadcast_to(0.2 * epsilon + floor, (3, 6))
    lost = np.where(epsilon > 0, (0.1 * cosine) ** power, start)[..., None, None] * np.array([0.0, 1.0])[:, None]
    measured = np.ones((3, 6, 2, 4))
    dims = ("seed", "epsilon", "time", "token")
    data = {"measured_flow": (dims, measured), "predicted_flow": (dims, measured - lost), "cosine": (("seed", "epsilon"), cosine)}
    return xr.Dataset(data, coords={"epsilon": epsilon})


def test_judge_of_the_mixture_wants_zero_at_zero_and_the_first_order():
    assert passed(sensitivity.judge(mixture_runs()))
    for bad in (mixture_runs(2.0), mixture_runs(0.5), mixture_runs(start=1e-6), mixture_runs(floor=0.1)):
        assert not passed(sensitivity.judge(bad))
    with pytest.raises(jd.Inconclusive):
        sensitivity.judge(mixture_runs().isel(epsilon=slice(0, 3)))
