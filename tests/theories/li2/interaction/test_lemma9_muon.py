"""The polar factor's judges on small runs; settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.interaction import lemma9_muon as claims
from tests.theories.li2.helpers import rejects


def test_judges_of_the_polar_factor_reject_distortions():
    ds = jd.sweep(claims.trial, jd.grid(claims.Polar, rows=6, columns=3), seeds=2)
    for form, holds in (("derived", True), ("printed", False)):
        assert all(c.passed for c in claims.judge_column(ds.sel(form=form))) == holds
    one = ds.sel(form="derived")
    assert all(c.passed for c in claims.judge_inner(one))
    for name, judge in (("inner", claims.judge_inner), ("error", claims.judge_column), ("column", claims.judge_column)):
        assert rejects(judge, one, name, 0.9) and rejects(judge, one, name, 1.1)


@pytest.mark.parametrize("fields", [{"columns": 16}, {"columns": 1}])
def test_settings_refuse(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.*not allowed"):
        claims.Polar(**fields)
