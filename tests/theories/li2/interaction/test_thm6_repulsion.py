"""Repulsion's judge on small runs; settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.interaction import thm6_repulsion as pair_claims
from tests.theories.li2.helpers import rejects


def test_judge_of_pairs_rejects_distortions():
    pairs = jd.sweep(pair_claims.trial, jd.grid(pair_claims.Pairs, activation=["silu"], nodes=[12], capacity=16), seeds=2)
    assert all(c.passed for c in pair_claims.judge_identity(pairs))
    assert rejects(pair_claims.judge_identity, pairs, "b", 1 + 1e-9)


@pytest.mark.parametrize("fields", [{"nodes": 11}, {"assumed": 0.0}])
def test_settings_refuse(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.*not allowed"):
        pair_claims.Pairs(**fields)
