"""Judges of bias carriers on made-up data, and their figures."""

import pytest
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn.theories.cogo.trained import carriers as claims
from tests.theories.cogo.oracle import passes, runs


def test_judge_of_carriers():
    ds = runs(
        predicted_own=2**0.5, measured_own=1.39, fours=5, measured_n6=6, predicted_n6=3.8, predicted_rise=0.9, measured_rise=0.89
    )
    ds = ds.assign(rise_four=0 * ds.measured_rise, predicted_norm=ds.fours * 40, measured_norm=ds.fours * 39.8)
    two = xr.DataArray([1.0, -1.0], dims="part")
    ds = ds.assign(predicted_bias=ds.fours / 5 * two, measured_bias=ds.fours / 5 * two * 1.01, from_four=ds.fours * two * 0)
    late = xr.DataArray([2.0, 6.0], dims="epoch")
    ds = ds.assign(curve_fours=ds.fours * late / 6, curve_sixes=ds.measured_n6 * late / 6)
    ds = ds.assign(memory_norm=ds.predicted_norm * 5, sixes_norm=ds.predicted_norm * 1.05, predicted_diagonal=22 + 0 * ds.fours)
    judges = {"bias_carrier": claims.judge_bias, "one_o6": claims.judge_one, "n6_trained": claims.judge_n6}
    for claim in claims.CLAIMS[:3]:
        judge = judges[claim.id.removeprefix("cogo.")]
        assert passes(judge, ds)
        breaches = [c.breach for c in claim.controls.values() if callable(c.breach)]  # others are runs of their own
        for breach in [*breaches, *claim.rivals.values()]:
            assert not passes(judge, breach(ds))
    for judge, name in (
        (claims.judge_one, "rise"),
        (claims.judge_bias, "bias"),
        (claims.judge_bias, "own"),
        (claims.judge_n6, "norm"),
    ):
        assert not passes(judge, ds.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]}))


def test_judge_of_the_diagonal():
    ds = runs(predicted_diagonal=22, measured_diagonal=21.95, predicted_shortfall=0.04, measured_shortfall=0.042, loss=1e-4)
    end = xr.DataArray([0.0, 1.0], dims="epoch")
    ds = ds.assign(curve_diagonal=ds.measured_diagonal * end, others_square=1e-3 * ds.loss, others_largest=10 * ds.loss)
    ds = ds.assign(shuffled_square=ds.measured_diagonal, shuffled_largest=ds.loss + 0.5)
    assert passes(claims.judge_diagonal, ds)
    claim = claims.CLAIMS[3]
    for breach in [
        *(c.breach for c in claim.controls.values()),
        *claim.rivals.values(),
        lambda d: d.assign(predicted_diagonal=1.1 * d.predicted_diagonal),
        lambda d: d.assign(others_square=0.1 * d.predicted_diagonal),
        lambda d: d.assign(others_largest=d.others_largest + 0.2),
        lambda d: d.assign(measured_shortfall=2 * d.measured_shortfall),
    ]:
        assert not passes(claims.judge_diagonal, breach(ds))


@pytest.mark.slow
def test_figures_can_be_drawn(trained_runs):
    for claim in claims.CLAIMS:
        fig = Figure()
        claim.plot(trained_runs, fig)
        assert fig.axes
