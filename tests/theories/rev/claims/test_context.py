"""Judges of what the theorems leave out."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.rev.claims import context
from tests.theories.rev.helpers import passed, plain


def test_context_judges(cot_runs):
    one, both = plain(cot_runs), plain(cot_runs, context="both")
    assert passed(context.judge_shares, one)
    assert not passed(context.judge_shares, both)
    assert not passed(context.judge_shares, one.assign(predicted_share=one.predicted_share + [-0.2, 0.2]))
    assert passed(context.judge_query, both)
    assert not passed(context.judge_query, one)
    for rival in (context.unlearned, context.learned_too):
        assert not passed(context.judge_query, rival(both))
    with pytest.raises(jd.Inconclusive, match="8 seeds"):
        context.judge_shares(one.isel(seed=slice(2)))
