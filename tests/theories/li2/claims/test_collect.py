"""The collections' judges on small runs; settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.claims import collect
from tests.theories.li2.helpers import rejects


def test_judges_of_collections_reject_distortions():
    ds = jd.sweep(collect.trial, jd.grid(collect.Collect, features=4, draws=2000, rounds=60, chains=64, longest=40), seeds=8)
    for form, holds in (("derived", True), ("printed", False)):
        assert all(c.passed for c in collect.judge_collect(ds.sel(form=form))) == holds
    one = ds.sel(form="derived")
    assert all(c.passed for c in collect.judge_leader(one))
    for name, judge in (("share", collect.judge_collect), ("floor", collect.judge_collect), ("winner", collect.judge_leader)):
        assert rejects(judge, one, name, 0.9) and rejects(judge, one, name, 1.1)
    assert rejects(collect.judge_collect, one, "nodes", 0.8) and rejects(collect.judge_collect, one, "nodes", 1.2)


@pytest.mark.parametrize("fields", [{"features": 1}, {"shape": 0.0}, {"chains": 0}])
def test_settings_refuse(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.*not allowed"):
        collect.Collect(**fields)
