"""Shapes of equal numbers of weights, the trial's records, and what is refused; the judge on made-up losses."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.mobile import depth, model
from jaxdyn.theories.mobile.depth import PAPER, QUICK, Depth, trial
from tests.theories.mobile.helpers import runs


@pytest.mark.parametrize("grid", [QUICK, PAPER])
def test_shapes_have_the_weights_asked_for(grid):
    for s in grid.cells():
        assert abs(model.weights_of(s.decoder()) / s.weights - 1) < 0.005
        assert s.hidden() >= s.sizes()[1]


@pytest.mark.slow
def test_a_trial_learns():
    small = {"batch": 2, "length": 8, "steps": 20, "records": 2, "windows": 2}
    s = jd.grid(Depth, shape="2x8", weights=4_000, lr=2e-2, **small).cells()[0]
    with jax.enable_x64(True):
        out = jax.device_get(jax.jit(lambda s: trial(s, jax.random.key(0)))(s))
    curve = out.recorded["curve"].value
    assert curve.shape == (3, 2) and np.all(curve[-1] < curve[0] - 0.2)
    assert out.recorded["layers"].value == 2
    assert out.recorded["count"].value == model.weights_of(s.decoder())


@pytest.mark.parametrize(
    ("fields", "why"),
    [({"shape": "deep"}, "layers x width"), ({"shape": "0x8"}, "layers x width"), ({"shape": "2x12"}, "multiple of entries")]
    + [({"shape": "3x64"}, "weights left for the MLP")],
)
def test_settings_that_are_not_allowed(fields, why):
    with pytest.raises(UsageError, match=why):
        jd.grid(Depth, **fields)


def made(*losses):
    return runs("shape", depth.SHAPES, losses, layers=[1, 3, 6], count=[100, 100, 100.5])


def test_the_optimum_is_the_depth_with_the_lowest_validation_loss():
    assert depth.optimum(made(2.2, 2.0, 2.1)) == 3
    assert depth.optimum(made(2.0, 2.1, 2.2)) == 1


def test_losses_are_read_over_that_of_one_layer():
    (claim,) = depth.CLAIMS
    learned, weights, *readings = depth.judge(made(2.2, 2.0, 2.1))
    assert learned.passed and weights.passed
    assert {r.name: r.value for r in readings} == pytest.approx({"loss, 3x32 minus 1x48": -0.2, "loss, 6x24 minus 1x48": -0.1})
    assert claim.recorded.keys() == {r.name for r in readings}
