"""The polar factor's judges on small runs; settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.interaction import lemma9_muon
from tests.theories.li2.helpers import rejects


def test_judges_of_the_polar_factor_reject_distortions():
    ds = jd.sweep(lemma9_muon.trial, jd.grid(lemma9_muon.Polar, rows=6, columns=3), seeds=2)
    for form, holds in (("derived", True), ("printed", False)):
        assert all(c.passed for c in lemma9_muon.judge_column(ds.sel(form=form))) == holds
    one = ds.sel(form="derived")
    assert all(c.passed for c in lemma9_muon.judge_inner(one))
    judges = {"inner": lemma9_muon.judge_inner} | dict.fromkeys(("error", "column"), lemma9_muon.judge_column)
    for name, judge in judges.items():
        assert rejects(judge, one, name, 0.9) and rejects(judge, one, name, 1.1)


def test_columns_that_span_the_space_are_refused():
    with pytest.raises(jd.UsageError, match="columns=16.*not allowed: columns is below rows"):
        lemma9_muon.Polar(columns=16)
