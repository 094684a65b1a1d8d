"""Judges of what the theorems leave out."""

import numpy as np

from jaxdyn.theories.rev.claims import context
from tests.theories.rev.helpers import passed, plain, rejected


def test_context_judges(cot_runs):
    one, both = plain(cot_runs), plain(cot_runs, context="both")
    assert not rejected(context.judge_shares, one) and rejected(context.judge_shares, both)
    noise = np.random.default_rng(0).normal(size=one.measured_share.shape)
    law = (0.97 * one.predicted_share).broadcast_like(one.measured_share)
    many = one.assign(measured_share=law.transpose(*one.measured_share.dims) * (1 + 0.01 * noise))
    assert passed(context.judge_shares, many)
    assert rejected(context.judge_shares, many.assign(predicted_share=one.predicted_share + [-0.1, 0.1]))
    assert passed(context.judge_query, both)
    assert not passed(context.judge_query, one)
    for rival in (context.unlearned, context.learned_too):
        assert not passed(context.judge_query, rival(both))
