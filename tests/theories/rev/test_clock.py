"""Judge of the clock."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.theories.rev import clock
from tests.theories.rev.helpers import distorted, passed, plain, rejected


@pytest.fixture
def runs(cot_runs):
    """Real rows; their means are made up, near the law, since so few runs would decide nothing."""
    ds = plain(cot_runs)
    law, noise = ds.predicted_mean, np.random.default_rng(0).normal(size=ds.predicted_mean.shape)
    wrong = xr.where(law.token == "target", 1 - law, law).transpose(*law.dims) * (1 + 0.002 * noise)
    near = xr.where(law.token == "target", 1 - wrong, wrong)
    return ds.assign(measured_mean=near.transpose(*law.dims))


@pytest.mark.parametrize("name, factor", [("mean", 1.1), ("mean", 0.9), ("row", 1.1), ("row", 0.9)])
def test_clock_judge(runs, name, factor):
    assert passed(clock.judge, runs)
    assert rejected(clock.judge, distorted(runs, name, factor))


def test_clock_judge_rejects_other_models_and_the_flow(runs, cot_runs):
    assert rejected(clock.judge, clock.STILL(runs))
    assert [c.passed for c in clock.judge(runs.assign(predicted_mean=runs.flow_mean))][0] is False
    assert rejected(clock.judge, plain(cot_runs, context="both"))
    assert not rejected(clock.judge, plain(cot_runs)), "few runs refute nothing"
