"""Theorem 1 of JoMA, softmax attention, in flows with prescribed gradients."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.claims import softmax


@pytest.fixture(scope="module")
def driven():
    return jd.sweep(softmax.driven_trial, jd.grid(softmax.DrivenBlock, nodes=[1, 3], split=[0.0, 1.0], ratio=[1.0, 10.0]), seeds=3)


def passed(checks):
    return [c.passed for c in checks]


@pytest.mark.parametrize(
    ("form", "split", "nodes", "holds"),
    [("law", 0.0, 3, True), ("law", 1.0, 1, True), ("law", 1.0, 3, False), ("residual", 1.0, 3, True), ("printed", 0.0, 1, False)],
)
def test_softmax_law_in_driven_flows(driven, form, split, nodes, holds):
    """The law needs the factorisation node by node; for one node, or with the residual kept, the summed one is enough."""
    ds = driven.sel(form=form, split=split, nodes=nodes)
    assert passed(softmax.judge_driven(ds)) == [holds, True, True]
    if holds:
        assert not passed(softmax.judge_driven(softmax.wrong_temperature(ds)))[0]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"samples": 5}, "3 tokens need at least 6"),
        ({"nodes": 4.0}, "nodes=4.0 is not allowed"),
        ({"dim": 3}, "orthonormal columns need dim > tokens"),
    ],
)
def test_settings_refuse_what_the_arrays_cannot_hold(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        softmax.DrivenBlock(**fields)
