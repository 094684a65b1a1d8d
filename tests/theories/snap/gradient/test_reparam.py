"""The judges of the gradient, of Theorem 1's form and of the pressure."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.snap.gradient import frozen_decoder
from jaxdyn.theories.snap.gradient import reparam as claims
from tests.theories.snap.helpers import both_ways, passes


def test_judge_of_the_gradient():
    ds = jd.sweep(claims.reparam_trial, jd.grid(claims.Random, tokens=8, classes=2, queries=1, query_share=[0.0, 1.0]), seeds=2)
    good = ds.sel(query_share=0.0)
    assert passes(claims.judge_reparam, good)
    assert not passes(claims.judge_reparam, ds.sel(query_share=1.0))
    (without_projector,) = claims.CLAIMS[0].rivals.values()
    assert not passes(claims.judge_reparam, without_projector(good))
    for name in ("law_y", "law_z", "batch_y", "batch_z"):
        assert not passes(claims.judge_reparam, good.assign({f"predicted_{name}": 1.1 * good[f"predicted_{name}"]}))


def test_the_form_over_several_sizes_at_once():
    """Times differ with the number of tokens, and arrays are padded."""
    ds = jd.sweep(frozen_decoder.trial, jd.grid(frozen_decoder.Frozen, tokens=[24, 32], classes=2), 1)
    assert passes(claims.judge_form, ds)
    assert not passes(claims.judge_form, jd.scaled(predicted_rise=1.2)(ds)) and not passes(
        claims.judge_form, claims.UNSATURATED(ds)
    )


def test_judge_of_the_form(frozen_runs):
    good = frozen_runs.sel(common=0.0)
    assert passes(claims.judge_form, good)
    assert not passes(claims.judge_form, frozen_runs.sel(common=0.5))
    assert not any(c.passed for c in claims.judge_form(claims.SILENT(good)))
    failed = [c.name for c in claims.judge_form(claims.UNSATURATED(good)) if not c.passed]
    assert len(failed) == 4, failed
    for variable in ("gradient", "gamma", "total", "peak", "peak_time", "rise", "fall"):
        for distorted in both_ways(good, variable):
            assert not passes(claims.judge_form, distorted)


def pressure(on_tokens, closed):
    dims = ("seed", "time", "class", "own")
    return xr.Dataset(
        {
            "measured_xi": (dims, on_tokens),
            "predicted_xi": (dims[:3], closed),
            "gamma": (dims[:2], np.ones(closed.shape[:2])),
            "measured_mean": (dims[:1], on_tokens[:, 0].mean((1, 2))),
            "predicted_mean": (dims[:1], np.full(len(closed), 0.2)),
        }
    )


def test_judge_of_the_pressure():
    closed = np.full((2, 4, 3), 0.2)
    on_tokens = np.full((2, 4, 3, 2), 0.2)
    on_tokens[:, 1:] *= 3  # only the first time is compared
    assert passes(claims.judge_xi, pressure(on_tokens, closed))
    assert not passes(claims.judge_xi, pressure(on_tokens, 1.1 * closed))
    assert not passes(claims.judge_xi, pressure(1.1 * on_tokens, 1.1 * closed))
    for value in (0.0, -1e-3):
        broken = on_tokens.copy()
        broken[0, 2, 1, 0] = value
        assert not passes(claims.judge_xi, pressure(broken, closed))


def test_settings_refuse_what_cannot_be():
    with pytest.raises(jd.UsageError, match="common times factor is a share"):
        claims.Overlapping(common=0.5, factor=2.0)
    with pytest.raises(jd.UsageError, match="queries <= classes"):
        claims.Random(queries=9)
