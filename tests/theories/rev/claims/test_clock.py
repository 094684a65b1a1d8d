"""Judge of the clock."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.rev.claims import clock
from tests.theories.rev.helpers import distorted, passed, plain


@pytest.mark.parametrize("name, factor", [("mean", 1.1), ("mean", 0.9), ("row", 1.1), ("row", 0.9)])
def test_clock_judge(cot_runs, name, factor):
    ds = plain(cot_runs)
    assert passed(clock.judge, ds)
    assert not passed(clock.judge, distorted(ds, name, factor))


def test_clock_judge_rejects_other_models_and_the_flow(cot_runs):
    ds = plain(cot_runs)
    assert not passed(clock.judge, clock.unmoved(ds))
    flow = ds.assign(predicted_mean=ds.flow_mean)
    assert clock.deviation(flow).max() > 2 * clock.deviation(ds).max()
    assert not passed(clock.judge, plain(cot_runs, context="both"))
    with pytest.raises(jd.Inconclusive, match="8 seeds"):
        clock.judge(ds.isel(seed=slice(4)))
