"""Judges of the claims on bias carriers on made-up data."""

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.cogo.claims import carriers as claims
from tests.theories.cogo.oracle import passes, runs


def test_judge_of_carriers():
    ds = runs(
        predicted_own=2**0.5, measured_own=1.39, fours=5, measured_n6=6, predicted_n6=3.8, predicted_rise=0.9, measured_rise=0.85
    )
    ds = ds.assign(rise_four=0 * ds.measured_rise, predicted_norm=ds.fours * 40, measured_norm=ds.fours * 39.8)
    two = xr.DataArray([1.0, -1.0], dims="part")
    ds = ds.assign(predicted_bias=ds.fours / 5 * two, measured_bias=ds.fours / 5 * two * 1.01, from_four=ds.fours * two * 0)
    ds = ds.assign(memory_norm=ds.predicted_norm * 5)
    assert passes(claims.judge_bias, ds) and passes(claims.judge_one, ds) and passes(claims.judge_n6, ds)
    for judge, breach in (
        (claims.judge_bias, jd.swap(measured_bias="from_four")),
        (claims.judge_bias, jd.swap(measured_bias=0.0)),
        (claims.judge_one, jd.swap(measured_rise="rise_four")),
        (claims.judge_n6, jd.swap(predicted_n6=1.0)),
        (claims.judge_n6, jd.swap(predicted_norm="memory_norm")),
        (claims.judge_one, lambda d: d.assign(measured_n6=0 * d.measured_n6)),
        (claims.judge_one, lambda d: d.assign(predicted_rise=1.1 * d.predicted_rise)),
        (claims.judge_bias, lambda d: d.assign(predicted_bias=1.1 * d.predicted_bias)),
        (claims.judge_n6, lambda d: d.assign(predicted_norm=1.1 * d.predicted_norm)),
    ):
        assert not passes(judge, breach(ds))


def test_judge_of_the_diagonal():
    ds = runs(predicted_diagonal=22, measured_diagonal=21.95, predicted_shortfall=0.04, measured_shortfall=0.042)
    end = xr.DataArray([0.0, 1.0], dims="epoch")
    ds = ds.assign(curve_diagonal=ds.measured_diagonal * end, curve_cross=0.001 * ds.measured_diagonal * end)
    assert passes(claims.judge_diagonal, ds)
    for breach in (
        claims.untrained,
        claims.without_factor,
        lambda d: d.assign(predicted_diagonal=1.1 * d.predicted_diagonal),
        lambda d: d.assign(curve_cross=0.1 * d.curve_diagonal),
        lambda d: d.assign(measured_shortfall=2 * d.measured_shortfall),
    ):
        assert not passes(claims.judge_diagonal, breach(ds))


def test_figures_can_be_drawn(trained_runs):
    for claim in claims.CLAIMS:
        fig = Figure()
        claim.plot(trained_runs, fig)
        assert fig.axes
