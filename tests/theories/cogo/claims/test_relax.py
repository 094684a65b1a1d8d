"""Judges of the claims on the flow of potentials."""

import pytest

import jaxdyn as jd
from jaxdyn.errors import Inconclusive
from jaxdyn.theories.cogo.claims import relax as claims
from jaxdyn.theories.cogo.trials import relax as trials


def test_judges_accept_and_reject():
    ds = jd.sweep(trials.rdot_trial, jd.grid(trials.Potentials, groups=("2x2",), hidden=2), seeds=2)
    assert all(c.passed for c in claims.judge_rdot(ds))
    for name in ("spectrum", "velocity", "fall"):
        assert not all(c.passed for c in claims.judge_rdot(ds.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})))
    wide = jd.grid(trials.Wide, width=[16.0, 32.0, 64.0], nodes=64)
    ds = jd.sweep(trials.decouple_trial, wide, seeds=32)
    assert all(c.passed for c in claims.judge_decouple(ds))
    for factor in (1.3, 0.7):  # 32 draws of networks as narrow as these resolve no less
        assert not all(c.passed for c in claims.judge_decouple(ds.assign(predicted_ratio=factor * ds.predicted_ratio)))
    assert not all(c.passed for c in claims.judge_decouple(ds.assign(predicted_diagonal=1.1 * ds.predicted_diagonal)))
    with pytest.raises(Inconclusive):
        claims.judge_decouple(ds.isel(width=slice(2)))
