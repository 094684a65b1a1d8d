"""Theorem 1 of JoMA, softmax attention, in flows with prescribed gradients."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.invariant import softmax_flow


@pytest.fixture(scope="module")
def driven():
    grid = jd.grid(softmax_flow.DrivenBlock, nodes=[1, 3], split=[0.0, 1.0], moving=[0.0, 1.0], ratio=[1.0, 10.0])
    return jd.sweep(softmax_flow.driven_trial, grid, seeds=3)


def passed(checks):
    return [c.passed for c in checks]


@pytest.mark.parametrize(
    ("form", "split", "nodes", "holds"),
    [("law", 0.0, 3, True), ("law", 1.0, 1, True), ("law", 1.0, 3, False), ("residual", 1.0, 3, True), ("printed", 0.0, 1, False)],
)
def test_softmax_law_in_driven_flows(driven, form, split, nodes, holds):
    """The law needs the factorisation node by node; for one node, or with the residual kept, the summed one is enough."""
    ds = driven.sel(form=form, split=split, nodes=nodes, moving=0.0)
    assert passed(softmax_flow.judge_driven(ds)) == [True, holds]
    for rival in softmax_flow.RIVALS.values():
        assert not passed(softmax_flow.judge_driven(rival(ds)))[-1]


def test_moving_mean_attention_needs_the_moving_form(driven):
    ds = driven.sel(split=0.0, moving=1.0)
    assert all(passed(softmax_flow.judge_moving(ds.sel(form="moving"))))
    assert passed(softmax_flow.judge_moving(ds.sel(form="law"))) == [True, True, False]
    still = driven.sel(split=0.0, moving=0.0)
    np.testing.assert_allclose(still.predicted_z.sel(form="moving"), still.predicted_z.sel(form="law"), atol=1e-11)
    constant = softmax_flow.CONSTANT_LAW(ds.sel(form="moving")).predicted_z
    np.testing.assert_allclose(constant, ds.predicted_z.sel(form="law"), atol=1e-12)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"samples": 5}, "3 tokens need at least 6"),
        ({"nodes": 4.0}, "nodes is at most hidden"),
        ({"dim": 3}, "orthonormal columns need dim > tokens"),
    ],
)
def test_settings_refuse_what_the_arrays_cannot_hold(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        softmax_flow.DrivenBlock(**fields)
