"""Judges of what the theorems leave out."""

import numpy as np

from jaxdyn.theories.rev import query_context
from tests.theories.rev.helpers import passed, plain, rejected


def test_context_judges(cot_runs):
    one, both = plain(cot_runs), plain(cot_runs, context="both")
    assert not rejected(query_context.judge_shares, one) and rejected(query_context.judge_shares, both)
    noise = np.random.default_rng(0).normal(size=one.measured_share.shape)
    law = (0.97 * one.predicted_share).broadcast_like(one.measured_share)
    many = one.assign(measured_share=law.transpose(*one.measured_share.dims) * (1 + 0.01 * noise))
    assert passed(query_context.judge_shares, many)
    assert rejected(query_context.judge_shares, many.assign(predicted_share=one.predicted_share + [-0.1, 0.1]))
    assert passed(query_context.judge_query, both)
    assert not passed(query_context.judge_query, one)
    bounds = {c.name: c.bound for c in query_context.judge_query(both)}
    for rival in (query_context.UNLEARNED, query_context.LEARNED_TOO):
        said = {name: value(both) if callable(value) else value for name, value in rival.items()}
        assert not any(bounds[name][0] <= value <= bounds[name][1] for name, value in said.items())
