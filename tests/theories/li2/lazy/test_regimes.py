"""The ridge's judges on small runs; settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.lazy import regimes
from tests.theories.li2.helpers import rejects


def test_judges_of_regimes_reject_distortions():
    ds = jd.sweep(regimes.trial, jd.grid(regimes.Regimes, nodes=[5, 20], group="4", capacity=20), seeds=2)
    for form, holds in (("derived", True), ("printed", False)):
        one = ds.sel(form=form)
        for judge in (regimes.judge_eta, regimes.judge_beta):
            assert all(c.passed for c in judge(one)) == holds, (form, judge)
    one = ds.sel(form="derived")
    for name, judge in (("small", regimes.judge_eta), ("large", regimes.judge_eta), ("scaled", regimes.judge_beta)):
        assert rejects(judge, one, name, 0.9) and rejects(judge, one, name, 1.1), name


@pytest.mark.parametrize("fields", [{"nodes": 4}, {"eta": -1.0}])
def test_settings_refuse(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.*not allowed"):
        regimes.Regimes(**fields)
