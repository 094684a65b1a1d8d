"""The judges of the decoder's clock on small grids."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.snap.claims import clock as claims
from tests.theories.snap.helpers import both_ways, passes


@pytest.fixture(scope="module")
def one_sample():
    grid = jd.grid(claims.OneSample, eta=[2.0], skew=[0.0, 0.5], tokens=16, classes=3, distinct=2, steps=40)
    return jd.sweep(claims.one_sample_trial, grid, seeds=64)


@pytest.mark.parametrize(
    ("judge", "variables"), [(claims.judge_clock, ["ode", "rows"]), (claims.judge_scan, ["hit"])], ids=["clock", "scan"]
)
def test_judges_of_the_frozen_network(frozen_runs, judge, variables):
    good = frozen_runs.sel(common=0.0, form="derived")
    assert passes(judge, good)
    assert not passes(judge, frozen_runs.sel(common=0.5, form="derived"))
    for variable in variables:
        for distorted in both_ways(good, variable):
            assert not passes(judge, distorted)


def test_clock_of_k_tokens_is_refuted(frozen_runs):
    assert not any(c.passed for c in claims.judge_scan(frozen_runs.sel(common=0.0, form="printed")))


def test_judge_of_single_samples(one_sample):
    good = one_sample.sel(skew=0.0)
    assert passes(claims.judge_one_sample, good)
    assert not passes(claims.judge_one_sample, one_sample.sel(skew=0.5))
    assert not passes(claims.judge_one_sample, jd.swap(predicted_hit="flow_hit")(good))
    for variable in ("advantage", "hit"):
        assert not passes(claims.judge_one_sample, good.assign({f"predicted_{variable}": 1.1 * good[f"predicted_{variable}"]}))
    with pytest.raises(jd.Inconclusive, match="8 seeds"):
        claims.judge_one_sample(good.isel(seed=slice(4)))


def test_records_fall_on_steps():
    with pytest.raises(jd.UsageError, match="multiple of samples=8"):
        claims.OneSample(steps=30)
