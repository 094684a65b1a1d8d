"""Stage I's judges on small runs; settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.lazy import gf_ridge
from tests.theories.li2.helpers import rejects


def test_judges_of_stage_one_reject_distortions():
    ds = jd.sweep(gf_ridge.trial, jd.grid(gf_ridge.StageOne, activation=["silu"], group="4", samples=12, hidden=3), seeds=2)
    judges = {"fixed": gf_ridge.judge_fixed, "growth": gf_ridge.judge_early}
    judges |= dict.fromkeys(("v", "sent"), gf_ridge.judge_closed)
    for name, judge in judges.items():
        assert all(c.passed for c in judge(ds)), name
        assert rejects(judge, ds, name, 0.9) and rejects(judge, ds, name, 1.1), name
    assert rejects(gf_ridge.judge_closed, ds, "rate", 1.1) and rejects(gf_ridge.judge_closed, ds, "rate", 0.8)


def test_the_late_rate_is_asked_for_where_the_slowest_mode_has_a_part():
    """A start without it converges faster, and is passed over; one that has a part is not."""
    ds = jd.sweep(gf_ridge.trial, jd.grid(gf_ridge.StageOne, activation=["silu"], group="4", samples=12, hidden=3), seeds=2)
    fast = ds.assign(measured_rate=2 * ds.predicted_rate + 0 * ds.measured_rate)
    assert [c.passed for c in gf_ridge.judge_closed(fast)] == [True, True, False]
    dead = (ds.seed == 1) & (ds.slowest > 0)
    mixed = ds.assign(measured_rate=ds.measured_rate.where(~dead, 2 * ds.predicted_rate))
    assert [c.passed for c in gf_ridge.judge_closed(mixed)] == [True, True, False]
    assert all(c.passed for c in gf_ridge.judge_closed(mixed.assign(slowest=ds.slowest.where(~dead, 1e-3))))


def test_more_samples_than_pairs_are_refused():
    with pytest.raises(jd.UsageError, match="samples=50, .* not allowed: samples is at most 49"):
        gf_ridge.StageOne(samples=50)
