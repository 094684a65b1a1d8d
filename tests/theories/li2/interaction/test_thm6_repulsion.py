"""Repulsion's judge on small runs; settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.interaction import thm6_repulsion
from tests.theories.li2.helpers import rejects


def test_judge_of_pairs_rejects_distortions():
    pairs = jd.sweep(thm6_repulsion.trial, jd.grid(thm6_repulsion.Pairs, activation=["silu"], nodes=[12], capacity=16), seeds=2)
    assert all(c.passed for c in thm6_repulsion.judge_identity(pairs))
    assert rejects(thm6_repulsion.judge_identity, pairs, "b", 1 + 1e-9)


@pytest.mark.parametrize("fields", [{"nodes": 129.0}, {"samples": 50}])
def test_more_than_there_are_are_refused(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.*not allowed: .* is at most"):
        thm6_repulsion.Pairs(**fields)
