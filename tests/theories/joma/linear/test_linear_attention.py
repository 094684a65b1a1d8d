"""Judges of the claims on linear attention."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.linear import linear_attention as linear
from jaxdyn.theories.joma.linear.training import HyperbolicLayer, hyperbolic_trial
from tests.theories.joma.helpers import distorted, upheld


@pytest.fixture(scope="module")
def hyperbolic():
    grid = jd.grid(HyperbolicLayer, tokens=4, samples=8, attention="linear", depth=[0.0, 1e-6, 1e-3, 1.0])
    return jd.sweep(hyperbolic_trial, grid, seeds=2)


def test_linear_attention_and_its_fixed_point(hyperbolic):
    assert upheld(linear.zero_judge, hyperbolic), linear.zero_judge(hyperbolic)
    moving = hyperbolic.isel(depth=slice(1, None))
    assert upheld(linear.hyperbolic_judge, moving)
    for name in ("z", "v"):
        assert not upheld(linear.hyperbolic_judge, distorted(moving, name, 1.1))
    assert not upheld(linear.zero_judge, hyperbolic.assign(measured_v=hyperbolic.measured_v + 1e-9))
