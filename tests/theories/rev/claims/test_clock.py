"""Judge of the clock."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.rev.claims import clock
from tests.theories.rev.helpers import distorted, passed, plain


@pytest.mark.parametrize("name, factor", [("mean", 1.1), ("mean", 0.9), ("row", 1.1), ("row", 0.9)])
def test_clock_judge(reversal_runs, name, factor):
    ds = plain(reversal_runs)
    assert passed(clock.judge, ds)
    assert not passed(clock.judge, distorted(ds, name, factor))


def test_clock_judge_rejects_other_models_and_the_flow(reversal_runs):
    assert not passed(clock.judge, reversal_runs.sel(form="derived", context="both", leak=0.0))
    flow_of_mean = plain(reversal_runs, "simplified")
    assert clock.deviation(flow_of_mean).max() > 2 * clock.deviation(plain(reversal_runs)).max()
    with pytest.raises(jd.Inconclusive, match="8 seeds"):
        clock.judge(plain(reversal_runs).isel(seed=slice(4)))
