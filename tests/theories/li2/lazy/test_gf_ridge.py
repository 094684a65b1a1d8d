"""Stage I's judges on small runs; settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.lazy import gf_ridge as claims
from tests.theories.li2.helpers import rejects


def test_judges_of_stage_one_reject_distortions():
    ds = jd.sweep(claims.trial, jd.grid(claims.StageOne, activation=["silu"], group="4", samples=12, hidden=3), seeds=2)
    judges = {"fixed": claims.judge_fixed, "growth": claims.judge_early, "v": claims.judge_closed, "sent": claims.judge_closed}
    for name, judge in judges.items():
        assert all(c.passed for c in judge(ds)), name
        assert rejects(judge, ds, name, 0.9) and rejects(judge, ds, name, 1.1), name
    assert rejects(claims.judge_closed, ds, "rate", 1.1) and rejects(claims.judge_closed, ds, "rate", 0.8)


def test_the_late_rate_is_asked_for_where_the_slowest_mode_has_a_part():
    """A start without it converges faster, and is passed over; one that has a part is not."""
    ds = jd.sweep(claims.trial, jd.grid(claims.StageOne, activation=["silu"], group="4", samples=12, hidden=3), seeds=2)
    fast = ds.assign(measured_rate=2 * ds.predicted_rate + 0 * ds.measured_rate)
    assert [c.passed for c in claims.judge_closed(fast)] == [True, True, False]
    dead = (ds.seed == 1) & (ds.slowest > 0)
    mixed = ds.assign(measured_rate=ds.measured_rate.where(~dead, 2 * ds.predicted_rate))
    assert [c.passed for c in claims.judge_closed(mixed)] == [True, True, False]
    assert all(c.passed for c in claims.judge_closed(mixed.assign(slowest=ds.slowest.where(~dead, 1e-3))))


@pytest.mark.parametrize("fields", [{"eta": 0.0}, {"samples": 50}, {"hidden": 0}])
def test_settings_refuse(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.*not allowed"):
        claims.StageOne(**fields)
