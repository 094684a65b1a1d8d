"""Judges of what the theorems leave out."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.rev.claims import context
from tests.theories.rev.helpers import passed, plain


def test_context_judges(cot_runs):
    one = plain(cot_runs).sel(eta=0.5)
    assert passed(context.judge_shares, one)
    both = cot_runs.sel(form="simplified", context="both", leak=0.0, eta=0.5)
    assert not passed(context.judge_shares, both)
    assert not passed(context.judge_shares, one.assign(predicted_share=one.predicted_share + [-0.2, 0.2]))
    assert passed(context.judge_query, both)
    assert not passed(context.judge_query, plain(cot_runs, "simplified").sel(eta=0.5))
    with pytest.raises(jd.Inconclusive, match="8 seeds"):
        context.judge_shares(one.isel(seed=slice(2)))
