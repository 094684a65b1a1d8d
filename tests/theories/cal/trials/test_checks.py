"""Settings refuse what is not allowed, in one sentence."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.cal.trials import edge, linear, noise, pair, shuffle, stairs, steps


@pytest.mark.parametrize(
    ("setting", "fields"),
    [
        (steps.Steps, {"eta": 0.0}),
        (steps.Steps, {"beta": 1.0}),
        (shuffle.Shuffled, {"shuffles": 3}),
        (noise.Noise, {"replicas": 1}),
        (linear.TwoLayer, {"strength": -1.0}),
        (linear.Deep, {"depth": 5.0}),
        (linear.Deep, {"depth": 1.5}),
        (linear.Symmetric, {"rank": 0}),
        (stairs.Stairs, {"modes": 7}),
        (pair.Pair, {"steps": 0}),
        (noise.Modes, {"eta": -0.1}),
        (edge.Network, {"samples": 7}),
        (stairs.Stairs, {"values": (1.0, 2.0, 3.0)}),
        (linear.Deep, {"values": (1.0, 0.5)}),
        (pair.Pair, {"horizon": 0.0}),
    ],
)
def test_settings_say_what_is_allowed(setting, fields):
    with pytest.raises(jd.UsageError, match="(is|are) not allowed"):
        setting(**fields)
