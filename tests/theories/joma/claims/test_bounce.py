"""The judge and the figure of the entropy bounce."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.claims import bounce

from ..helpers import distorted, panels, upheld


def test_bounce_judge(bounce_runs):
    ds = bounce_runs.sel(drive="critical")
    assert upheld(bounce.judge, ds)
    assert not upheld(bounce.judge, distorted(ds, "entropy", 1.1))
    assert not upheld(bounce.judge, distorted(ds, "limit", 1.1))
    linear = bounce_runs.sel(drive="linear")
    assert not upheld(bounce.judge, linear)
    h = linear.measured_entropy.isel(seed=0)
    assert float(h.diff("time").max()) < 1e-9 and float(h.isel(time=-1).max()) < 1e-6  # falls, never rises
    with pytest.raises(jd.Inconclusive, match="at least 3 values of eta"):
        bounce.judge(ds.isel(eta=slice(1)))


def test_figure_draws(bounce_runs):
    assert panels(bounce.CLAIMS[0], bounce_runs.sel(drive="critical"))
