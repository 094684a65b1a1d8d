"""The collections' judges on small runs and on few draws."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.li2.interaction import thm8_collect
from tests.theories.li2.helpers import rejects

CLAIM = next(c for c in thm8_collect.CLAIMS if c.id == "li2.thm8")


def test_judges_of_collections_reject_distortions():
    ds = jd.sweep(
        thm8_collect.trial, jd.grid(thm8_collect.Collect, features=4, draws=8000, rounds=400, chains=128, longest=40), seeds=8
    )
    for form, holds in (("derived", True), ("printed", False)):
        assert all(c.passed for c in thm8_collect.judge_collect(ds.sel(form=form))) == holds
    one = ds.sel(form="derived")
    assert all(c.passed for c in thm8_collect.judge_leader(one))
    for name, judge in (
        ("share", thm8_collect.judge_collect),
        ("floor", thm8_collect.judge_collect),
        ("winner", thm8_collect.judge_leader),
    ):
        assert rejects(judge, one, name, 0.9) and rejects(judge, one, name, 1.1)
    assert rejects(thm8_collect.judge_collect, one, "nodes", 0.7) and rejects(thm8_collect.judge_collect, one, "nodes", 1.4)
    for rival in CLAIM.rivals.values():
        assert False in [c.passed for c in CLAIM.judge(rival(one))]


def test_few_draws_leave_shares_and_numbers_of_nodes_undecided():
    """Shares and numbers exactly as predicted on average: decided or not by their spread and by the number of draws."""
    base = {"seed": np.arange(8), "way": list(thm8_collect.WAYS), "case": ["given", "equal"]}
    off = np.linspace(-1, 1, 8)[:, None] * np.ones(2)

    def outcome(draws, spread):
        ds = xr.Dataset(coords=base).assign(predicted_share=(("seed", "feature"), np.full((8, 2), 0.5)))
        ds = ds.assign(measured_share=ds.predicted_share, draws=("seed", np.full(8, draws)))
        ds = ds.assign(
            predicted_nodes=(("seed", "way"), np.full((8, 2), 3.0)), predicted_floor=(("seed", "case"), np.full((8, 2), 3.0))
        )
        ds = ds.assign(measured_nodes=ds.predicted_nodes * (1 + spread * off), measured_floor=ds.predicted_floor)
        return [c.passed for c in thm8_collect.judge_collect(ds)]

    assert outcome(1e4, 0.01) == [True] * 5
    assert outcome(1e3, 0.01) == [None, True, True, True, True]
    assert outcome(1e4, 0.2) == [True, None, None, True, True]
