"""Judges of how a sink grows, on made-up curves."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.theories.sink import bb_growth


def made(margin=None, **dims):
    """Twelve runs at 33 records: a sink that grows with the logarithm of the steps while its value shrinks."""
    rng = np.random.default_rng(0)
    steps = 25.0 * np.arange(33)
    noise = 0.05 * rng.normal(size=(12, 33))
    curve = 1.2 * np.log1p(steps / 50) if margin is None else margin(steps)
    rising = 0.1 + 0.4 * steps / steps[-1]
    return xr.Dataset(
        {
            "measured_margin": (("seed", "step"), curve * (1 + 0.1 * rng.normal(size=(12, 1))) + noise),
            "measured_idle": (("seed", "step"), rising + 0.1 * noise),
            "measured_drain": (("seed", "step"), 1.2 - 2 * rising + 0.1 * noise),
            "uniform": ("seed", np.full(12, 0.15)),
            "steps": (("seed", "step"), np.broadcast_to(steps, (12, 33))),
        }
    )


def test_the_law_that_made_the_curve_explains_the_most():
    for law, name in ((None, 0), (lambda t: np.sqrt(t) / 5, 1), (lambda t: t / 100, 2)):
        values = [c.value for c in bb_growth.judge_growth(made(law))[:3]]
        assert int(np.argmax(values)) == name and max(values) > 0.95
    x = xr.DataArray(np.arange(5.0), dims="step")
    assert float(bb_growth.slopes(x, 3 * x + 1)) == 3 and float(bb_growth.explained(x, 3 * x + 1)) == 1


def test_drains_follow_the_weight_unless_steps_are_permuted():
    ds = made()
    (followed,), (permuted,) = bb_growth.judge_drain(ds), bb_growth.judge_drain(bb_growth.shuffled(ds))
    assert followed.interval[1] < -0.9 and abs(permuted.value) < 0.5
    (still,) = bb_growth.judge_drain(ds.assign(measured_idle=0 * ds.measured_idle, measured_drain=0 * ds.measured_drain))
    assert still.value == 0


def test_the_world_without_triggers():
    flat = made().assign(measured_idle=made().measured_idle * 0 + 0.16, measured_drain=made().measured_drain * 0 + 1.1)
    ds = xr.concat([flat, made()], xr.DataArray([0.0, 3.0], dims="triggers", name="triggers"))
    more, less = bb_growth.judge_needed(ds)
    assert more.value == pytest.approx(0.34, abs=0.02) and less.value == pytest.approx(0.9, abs=0.02)
