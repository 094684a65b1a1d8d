"""Judges of the bilinear model."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.rev.claims import bilinear
from tests.theories.rev.helpers import distorted, passed


def test_bilinear_judges(flow_runs):
    ds, broken = flow_runs.sel(symmetric=0.0), flow_runs.sel(symmetric=1.0)
    assert passed(bilinear.judge_ratio, ds)
    assert not passed(bilinear.judge_ratio, broken)
    assert not passed(bilinear.judge_ratio, distorted(ds, "floor", 1.1))
    with pytest.raises(jd.Inconclusive, match="at least 3 values of d"):
        bilinear.judge_ratio(ds.sel(d=[20, 50]))


def test_event_and_closed_form_of_the_flow(flow_runs_all):
    ds = flow_runs_all.sel(kind="gaussian", symmetric=0.0, d=[200.0], stop=[0.1])
    assert bool(ds.stopped.all()) and passed(bilinear.judge_lower, ds)
    assert not passed(bilinear.judge_lower, distorted(ds, "end", 1.4))
    assert not passed(bilinear.judge_lower, flow_runs_all.sel(kind="gaussian", symmetric=1.0, d=[200.0], stop=[0.1]))
    ortho = flow_runs_all.sel(kind="orthonormal", symmetric=0.0, stop=0.0)
    assert passed(bilinear.judge_ortho, ortho.sel(d=[20]))
    assert not passed(bilinear.judge_ortho, ortho.sel(d=[15]))
    assert not passed(bilinear.judge_ortho, distorted(ortho.sel(d=[20]), "forward", 1.1))
