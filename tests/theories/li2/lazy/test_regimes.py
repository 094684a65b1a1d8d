"""Judges of small and large ridge on small runs; settings that are refused."""

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


def test_more_nodes_than_there_are_are_refused():
    with pytest.raises(jd.UsageError, match="nodes=201.*not allowed: nodes is at most capacity"):
        regimes.Regimes(nodes=201)
