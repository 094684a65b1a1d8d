"""Judges of Theorem 4."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.rev.claims import thm4
from tests.theories.rev.helpers import distorted, passed, plain


def test_indirect_judge(cot_runs):
    chains = plain(cot_runs).sel(eta=0.5)
    assert passed(thm4.judge_indirect, chains)
    assert not passed(thm4.judge_indirect, distorted(chains, "test", 0.9))
    assert not passed(thm4.judge_indirect, chains.assign(measured_test=chains.closed))
    assert not passed(thm4.judge_indirect, plain(cot_runs, "simplified").sel(eta=0.5))


def test_chain_judge(cot_runs):
    chains = plain(cot_runs).sel(eta=[0.9]).isel(record=[2, 3, 6])  # so few tokens need long to be certain
    assert passed(thm4.judge_chain, chains)
    assert not passed(thm4.judge_chain, distorted(chains, "chain", 1.1))
    assert not passed(thm4.judge_chain, chains.assign(measured_chain=chains.shuffled))
    with pytest.raises(jd.Inconclusive, match="no record is late enough"):
        thm4.judge_chain(chains.isel(record=slice(2)))
