"""Stage I's judges on small runs; settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.claims import ridge as claims
from tests.theories.li2.helpers import rejects


def test_judges_of_stage_one_reject_distortions():
    ds = jd.sweep(claims.trial, jd.grid(claims.StageOne, activation=["silu"], group="4", samples=12, hidden=3), seeds=2)
    judges = {"fixed": claims.judge_fixed, "growth": claims.judge_early, "v": claims.judge_closed, "sent": claims.judge_closed}
    for name, judge in judges.items():
        assert all(c.passed for c in judge(ds)), name
        assert rejects(judge, ds, name, 0.9) and rejects(judge, ds, name, 1.1), name
    assert rejects(claims.judge_closed, ds, "rate", 1.1)


@pytest.mark.parametrize("fields", [{"eta": 0.0}, {"samples": 50}, {"hidden": 0}])
def test_settings_refuse(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.*not allowed"):
        claims.StageOne(**fields)
