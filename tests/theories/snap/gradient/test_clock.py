"""The judges of the decoder's clock on small grids."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.snap.gradient import clock as claims
from tests.theories.snap.helpers import both_ways, passes


@pytest.fixture(scope="module")
def one_sample():
    grid = jd.grid(claims.OneSample, eta=[2.0], skew=[0.0, 0.5], tokens=16, classes=3, distinct=2, steps=80)
    return jd.sweep(claims.one_sample_trial, grid, seeds=2048)


def test_judge_of_the_frozen_network(frozen_runs):
    good = frozen_runs.sel(common=0.0)
    assert passes(claims.judge_clock, good)
    assert not passes(claims.judge_clock, frozen_runs.sel(common=0.5))
    for variable in ("rows", "hit"):
        for distorted in both_ways(good, variable):
            assert not passes(claims.judge_clock, distorted)


def test_rivals_of_the_clock(frozen_runs):
    good = frozen_runs.sel(common=0.0)
    for rival in (claims.UNTRAINED, claims.UNSATURATED):
        assert not any(c.passed for c in claims.judge_clock(rival(good)))
    off = abs(claims.UNSATURATED(good).predicted_rows / good.predicted_rows - 1).where(good.unit <= 0.012)
    assert float(off.max()) < 0.02, "at first it is the clock"


def test_judge_of_single_samples(one_sample):
    good = one_sample.sel(skew=0.0)
    assert passes(claims.judge_one_sample, good)
    assert not passes(claims.judge_one_sample, one_sample.sel(skew=0.5))
    assert any(c.passed is False for c in claims.judge_one_sample(jd.swap(predicted_hit="flow_hit")(good)))
    assert not any(c.passed for c in claims.judge_one_sample(claims.CHANCE(good)))
    for variable in ("advantage", "hit"):
        assert not passes(claims.judge_one_sample, good.assign({f"predicted_{variable}": 1.1 * good[f"predicted_{variable}"]}))
    assert all(c.passed is not False for c in claims.judge_one_sample(good.isel(seed=slice(4)))), "few runs refute nothing"


def test_records_fall_on_steps():
    with pytest.raises(jd.UsageError, match="multiple of samples=8"):
        claims.OneSample(steps=30)
