"""Judges of the bilinear model."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.bilinear import claims
from tests.theories.rev.helpers import distorted, passed


def synthetic(exponent):
    """Losses whose reverse follows the forward one with exponents of this size, a function of d, times a normal number."""
    d, time, seed = [20.0, 50.0, 100.0, 200.0], np.arange(6), np.arange(16)
    forward = xr.DataArray(3 * np.exp(-1.3 * time), {"time": time}, "time") * xr.ones_like(
        xr.DataArray(seed, {"seed": seed}, "seed")
    )
    size = xr.DataArray([exponent(x) for x in d], {"d": d}, "d")
    random = xr.DataArray(np.random.default_rng(0).normal(size=16), {"seed": seed}, "seed")
    reverse = 3 * (forward / 3) ** (size * random)
    names = {"measured_forward": forward + 0 * size, "measured_reverse": reverse, "measured_floor": reverse}
    return xr.Dataset(names | {"predicted_floor": 3 * (forward / 3) ** claims.EXPONENT + 0 * size}).transpose("d", "seed", "time")


def test_trend_of_the_exponent():
    ds = synthetic(lambda d: 1.5 / d)
    assert passed(claims.judge_ratio, ds)
    np.testing.assert_allclose(claims.slope(claims.largest(ds)), -1, atol=1e-9)
    assert not passed(claims.judge_ratio, synthetic(lambda d: 0.005))
    assert not passed(claims.judge_ratio, synthetic(lambda d: 30 / d))
    for factor in (1.1, 0.9):
        assert not passed(claims.judge_ratio, distorted(ds, "floor", factor))
    for exponent in (0.0, 1.0):
        assert not passed(claims.judge_ratio, claims.floor_at(exponent)(ds))
    with pytest.raises(jd.Inconclusive, match="at least 3 values of d"):
        claims.judge_ratio(ds.sel(d=[20, 50]))
    with pytest.raises(jd.Inconclusive, match="of 200 or more"):
        claims.judge_ratio(ds.sel(d=[20, 50, 100]))


def test_event_and_closed_form_of_the_flow(flow_runs):
    ds = flow_runs.sel(kind="gaussian", symmetric=0.0, d=[200.0], stop=[0.1])
    assert bool(ds.stopped.all()) and passed(claims.judge_lower, ds)
    for factor in (1.4, 0.8):
        assert not passed(claims.judge_lower, distorted(ds, "end", factor))
    assert not passed(claims.judge_lower, ds.assign(predicted_rise=ds.predicted_rise + 0.5))
    assert not passed(claims.judge_lower, flow_runs.sel(kind="gaussian", symmetric=1.0, d=[200.0], stop=[0.1]))
    ortho = flow_runs.sel(kind="orthonormal", symmetric=0.0, stop=0.0)
    assert passed(claims.judge_ortho, ortho.sel(d=[200]))
    assert not passed(claims.judge_ortho, ortho.sel(d=[15]))
    assert not passed(claims.judge_ortho, claims.both_fall(ortho.sel(d=[200])))
    assert not passed(claims.judge_ortho, distorted(ortho.sel(d=[200]), "forward", 1.1))


def test_figures_show_the_largest_sizes(flow_runs):
    ds = flow_runs.sel(kind="gaussian", symmetric=0.0, d=[15.0, 200.0], stop=[0.1])
    small, large = ds.assign_coords(pairs=5), (2 * ds).assign_coords(pairs=10)
    both = xr.concat([small, large], "pairs", coords="minimal", join="exact")
    xr.testing.assert_equal(claims.most_tokens(both).measured_end, large.measured_end)
    for name in ("bil_ratio", "bil_lower"):
        claim = next(c for c in claims.CLAIMS if c.id == f"rev.{name}")
        assert plotting.render(claim.plot, ds if name == "bil_lower" else ds.isel(stop=0)).startswith("<svg")
