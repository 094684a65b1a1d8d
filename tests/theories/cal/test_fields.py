"""Settings refuse what is not allowed, in one sentence."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.cal import eos_mlp, modified_flow, saxe, sgd_mean, sgd_noise, staircase, uv_eos


@pytest.mark.parametrize(
    ("setting", "fields"),
    [
        (modified_flow.Steps, {"eta": 0.0}),
        (modified_flow.Steps, {"beta": 1.0}),
        (sgd_mean.Shuffled, {"shuffles": 3}),
        (sgd_noise.Noise, {"replicas": 1}),
        (saxe.TwoLayer, {"strength": -1.0}),
        (saxe.Deep, {"depth": 5.0}),
        (saxe.Deep, {"depth": 1.5}),
        (saxe.Symmetric, {"rank": 0}),
        (staircase.Stairs, {"modes": 7}),
        (uv_eos.Pair, {"steps": 0}),
        (sgd_noise.Modes, {"eta": -0.1}),
        (eos_mlp.Network, {"samples": 7}),
        (staircase.Stairs, {"values": (1.0, 2.0, 3.0)}),
        (saxe.Deep, {"values": (1.0, 0.5)}),
        (uv_eos.Pair, {"horizon": 0.0}),
    ],
)
def test_settings_say_what_is_allowed(setting, fields):
    with pytest.raises(jd.UsageError, match="(is|are) not allowed"):
        setting(**fields)
