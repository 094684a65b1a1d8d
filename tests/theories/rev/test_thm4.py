"""Judges of Theorem 4."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.rev import thm4
from tests.theories.rev.helpers import distorted, passed, plain, rejected


def test_indirect_judge(cot_runs):
    chains = plain(cot_runs)
    assert passed(thm4.judge_indirect, chains)
    assert not passed(thm4.judge_indirect, distorted(chains, "test", 0.9))
    assert not passed(thm4.judge_indirect, chains.assign(measured_test=chains.closed))
    for rival in (thm4.GUESSED, thm4.ONE_STEP_ENOUGH):
        assert not passed(thm4.judge_indirect, rival(chains))


def test_chain_judge(cot_runs):
    chains = plain(cot_runs, eta=[0.9]).isel(record=[2, 5, -1])  # so few tokens need long to be certain
    assert not rejected(thm4.judge_chain, chains)
    assert rejected(thm4.judge_chain, distorted(chains, "chain", 1.1))
    assert rejected(thm4.judge_chain, chains.assign(measured_chain=chains.shuffled))
    for rival in (thm4.GUESSED, thm4.ONE_CLOCK):
        assert rejected(thm4.judge_chain, rival(chains))
    with pytest.raises(jd.Inconclusive, match="no record is late enough"):
        thm4.judge_chain(chains.isel(record=slice(2)))
