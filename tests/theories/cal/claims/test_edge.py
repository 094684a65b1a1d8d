"""Judge of the edge of stability, and which runs it speaks of."""

import dataclasses

import xarray as xr

import jaxdyn as jd
from jaxdyn.engine.verdict import decide
from jaxdyn.theories.cal.claims import edge
from tests.theories.cal.helpers import distorted, passed

EDGE = xr.DataArray([10.0, 20.0], dims="seed")


def runs(ratio=0.99, flow=2.0, before=1.0):
    sharpness = {"predicted_sharpness": EDGE, "measured_sharpness": EDGE * ratio, "before": EDGE * before, "flow": EDGE * flow}
    return xr.Dataset({**sharpness, "eta": 2 / EDGE, "assumed_flow_over_edge": EDGE * flow / EDGE, "status": 0 * EDGE.astype(int)})


def judged(ds):
    (claim,) = edge.CLAIMS
    twice = jd.scaled(predicted_sharpness=2.0)  # in place of runs at another step size
    return decide(dataclasses.replace(claim, controls={"edge at $4/\\eta$": twice}), ds, {})


def test_the_end_is_at_the_edge():
    assert passed(edge.judge(runs()))
    assert not passed(edge.judge(distorted(runs(), "sharpness", 1.2)))


def test_a_sharpness_that_still_moves_decides_nothing():
    decision = judged(runs(before=0.8))
    assert decision.verdict == "inconclusive" and "gate not met" in decision.message


def test_runs_whose_flow_stays_below_are_outside():
    below = runs(ratio=xr.DataArray([1.0, 0.5], dims="seed"), flow=xr.DataArray([2.0, 0.5], dims="seed"), before=EDGE / EDGE)
    below["before"] = below.measured_sharpness
    decision = judged(below)
    assert decision.outside == 1 and passed(decision.checks)
    assert judged(below.isel(seed=[1])).verdict == "inconclusive"
